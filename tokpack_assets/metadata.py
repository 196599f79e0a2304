"""What Dagster's UI shows of a built asset: figures that plot over time, tables, a picture, paths and links.

Numbers are plain, so the UI plots them; it shows few plots, so each stage names the figures worth one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import dagster as dg
import orjson

from tokpack_assets.environment import reports_address
from tokpack_assets.links import version_link
from tokpack_assets.pictures import POINTS, bars, curve
from tokpack_core.config import SPLITS
from tokpack_core.stages import corpus, export, normalize, pack, report, shards, tokenizer
from tokpack_core.stages.asset import Built, read_json

Shown = dict[str, Any]
SHORT = 12
DIGITS = 6
BAR = 20
MOST_ROWS = 100
"""Rows of a table that grows with the corpus."""


def asset_metadata(built: Built, seconds: float, instance: dg.DagsterInstance) -> Shown:
    """Metadata of one materialization: plain Python values and MetadataValues."""
    shown: Shown = {"digest": built.entry.object.digest, "version": built.entry.number}
    if built.stale:
        again = f"`tokpack build --retrain {built.asset}`, or `retrain: true` in the launchpad"
        shown["stale"] = f"kept, though {built.stale}; train again with {again}"
    if built.counts.get("encoder_warnings"):
        shown["encoder_warnings"] = "; ".join(built.counts["encoder_warnings"])
    if built.warnings:
        shown["reading_warnings"] = "; ".join(built.warnings)
    shown |= tokenizer_links(built, instance) | OF_STAGE[built.entry.object.stage](built)
    rows = [{"asset": key, "version": version[:SHORT]} for key, version in built.made_from.items()]
    return shown | {
        "made_from": table(rows, ["asset", "version"]),
        "size_bytes": built.manifest.size + built.units_bytes,
        "seconds": round(seconds, 2),
        "units_run": built.units_run,
        "units_reused": built.units_reused,
        "path": dg.MetadataValue.path(str(built.folder)),
    }


def tokenizer_links(built: Built, instance: dg.DagsterInstance) -> Shown:
    """The tokenizer that an asset was made with, by name and digest, with links to its asset and to that version."""
    found = [(key, digest) for key, digest in built.made_from.items() if key.startswith(f"{tokenizer.STAGE}/")]
    for name, digest in found:
        key = dg.AssetKey(name.split("/"))
        link = version_link(instance, key, digest)
        return {
            "tokenizer": dg.MetadataValue.asset(key),
            "tokenizer_version": dg.MetadataValue.md(f"[{name} {digest[:SHORT]}]({link})"),
            "tokenizer_digest": digest,
        }
    return {}


def figures(counts: dict[str, Any], names: Iterable[str]) -> Shown:
    found = {name: counts[name] for name in names if counts.get(name) is not None}
    return {name: round(value, DIGITS) if isinstance(value, float) else value for name, value in found.items()}


def corpus_metadata(built: Built) -> Shown:
    files = sorted(corpus.read_inventory(built.folder), key=lambda file: (-file.size, file.name))
    rows = [{"file": file.name, "bytes": file.size} for file in files[:MOST_ROWS]]
    return {
        "sizes": dg.MetadataValue.md(bars(spread([file.size for file in files]), "files by size, the largest first")),
        **figures(built.counts, ("files", "bytes")),
        "largest_files": table(rows, ["file", "bytes"]),
    }


def spread(values: list[int]) -> list[int]:
    """At most POINTS of the values, evenly chosen."""
    step = max(len(values) / POINTS, 1)
    return [values[int(number * step)] for number in range(min(len(values), POINTS))]


def normalization_metadata(built: Built) -> Shown:
    counts = built.counts
    shown = figures(counts, ("documents", "bytes", "train_bytes", "valid_bytes", "test_bytes", "parts"))
    skipped = counts["problems"].get("skipped", {})
    shown["documents_skipped"] = sum(skipped.values())
    changes = [
        {"lang": lang, "what": what, **change}
        for lang, by_kind in counts["normalization"].items()
        if lang != "replaced"
        for what, change in by_kind.items()
    ]
    splits = [{"split": split, "bytes": counts[f"{split}_bytes"]} for split in SPLITS]
    rows = [row | {"share": row["bytes"] / max(counts["bytes"], 1), "bar": bar(row, "bytes", splits)} for row in splits]
    return shown | {
        "splits": table(rows, ["split", "bytes", "share", "bar"]),
        "changed_by_language": table(changes[:MOST_ROWS], ["lang", "what", "documents", "characters"]),
        **{name: dg.MetadataValue.json(counts[name]) for name in ("problems", "normalization")},
    }


def tokenizer_metadata(built: Built) -> Shown:
    counts = built.counts
    shown = figures(counts, ("family", "vocab_size", "sample_bytes", "unicode"))
    rows = [{"role": role, "id": number} for role, number in counts["special_tokens"].items()]
    shown |= {"special_tokens": table(rows, ["role", "id"])}
    shown |= {name: dg.MetadataValue.json(counts[name]) for name in ("training", "export_check") if counts.get(name)}
    allocation = counts.get("training", {}).get("allocation")
    return shown | (allocation_metadata(allocation) if allocation else {})


def allocation_metadata(allocation: dict[str, Any]) -> Shown:
    """What each domain of an allocation asked for and got."""
    domains = [{"domain": name, **got} for name, got in allocation.items() if not isinstance(got, int)]
    told = [f"{row['domain']} {row['entries']:,} of {row['quota']:,} ({row['share']:.1%})" for row in domains]
    columns = ["domain", "quota", "entries", "share", "shared", "passed_over", "documents", "bytes"]
    return {"entries_by_domain": table(domains, columns), "allocation": ", ".join(told)}


def report_metadata(built: Built) -> Shown:
    found = read_json(built.folder / report.REPORT)
    sample, test = found["sample"], found["test"]
    points = sample["rank_curve"]
    growth = found["growth"]
    first = growth["tokens"].count(0)
    names = ("bytes_per_token", "tokens_per_word", "tokens_per_character")
    rows = [row | {"bar": bar(row, "bytes_per_token", test["languages"])} for row in test["languages"]]
    columns = ["lang", "bytes_per_token", "bar", "documents", "bytes", "tokens", "tokens_per_word"]
    rare = [{**row, "seen": "never" if row["below"] == 1 else f"< {row['below']} times"} for row in sample["rare"]]
    shares = {f"rare_share_below_{row['below']}": row["share"] for row in sample["rare"]}
    return {
        "report": dg.MetadataValue.url(f"{reports_address()}/{built.folder.name}/{report.PAGE}"),
        "coverage": dg.MetadataValue.md(
            curve(points["rank"], points["coverage"], "tokens covered by frequent entries")
        ),
        "growth": dg.MetadataValue.md(
            curve(growth["tokens"][first:], growth["utilization"][first:], "entries used by amount of text")
        ),
        **figures(sample, ("vocabulary_utilization",)),
        **figures(shares, shares),
        **figures(test, names),
        **structure_metadata(found["structure"]),
        **fairness_metadata(found["fairness"]),
        "findings": table(found["findings"], ["severity", "title", "evidence", "action"]),
        "bytes_per_token_by_language": table(rows, columns),
        "utilization_by_language": table(list(map(language_use_row, found["language_curves"])), USE_BY_LANGUAGE),
        "compression": compression(test["languages"], sample["languages"]),
        "rare_entries": table(rare, ["seen", "entries", "share", "text", "partial_utf8", "single_byte"]),
        "report_file": dg.MetadataValue.path(str(built.folder / report.PAGE)),
    }


MOST_OF_SAMPLE = 8
"""Languages without a test document that a line names."""


def compression(test: list[dict[str, Any]], sample: list[dict[str, Any]]) -> str:
    """Bytes per token by language: of the test splits, and of the training sample where they have no text of it."""
    told = {row["lang"]: f"{row['bytes_per_token']:.2f}" for row in test if row["bytes_per_token"]}
    mark = " (training sample)" if told else ""
    others = [row for row in sample if row["bytes_per_token"] and row["lang"] not in told]
    shown = others[:MOST_OF_SAMPLE] if told else others
    told |= {row["lang"]: f"{row['bytes_per_token']:.2f}{mark}" for row in shown}
    more = f", {len(others) - len(shown)} more in the report" if len(others) > len(shown) else ""
    return ", ".join(f"{lang or 'none'} {told[lang]}" for lang in sorted(told, key=str)) + more


USE_BY_LANGUAGE = ["lang", "tokens", "utilization", "new_if_doubled", "saturated"]


def language_use_row(curves: Shown) -> Shown:
    """What a language's own text of the sample uses, and whether more of it would use more."""
    growth = curves["growth"]
    last = {name: growth[name][-1] for name in ("tokens", "utilization")}
    return {
        "lang": curves["lang"],
        **last,
        "new_if_doubled": growth["new_if_doubled"],
        "saturated": growth["saturated"],
    }


def structure_metadata(found: Shown) -> Shown:
    residues = found["residues"]
    return {"unreachable_entries": found["unreachable"]["entries"]} | figures(
        {"residue_entries": residues and residues["entries"]}, ("residue_entries",)
    )


def fairness_metadata(found: Shown | None) -> Shown:
    """What the same sentences cost by language, where there is parallel text."""
    if found is None:
        return {}
    worst = {"worst_premium": found["languages"][0]["premium"], "gini": found["gini"]}
    rows = [row | {"bar": bar(row, "premium", found["languages"])} for row in found["languages"]]
    columns = ["lang", "premium", "bar", "low", "high", "tokens_per_sentence", "sentences"]
    return {**figures(worst, worst), "worst_language": found["worst"], "premium_by_language": table(rows, columns)}


def shards_metadata(built: Built) -> Shown:
    counts = built.counts
    shown = figures(counts, ("documents", "empty_documents", "tokens", "bytes", "shards"))
    shown |= {"bytes_per_token": round(counts["bytes"] / counts["tokens"], DIGITS)} if counts["tokens"] else {}
    return shown | (vision_metadata(counts["vision"], counts["tokens"]) if "vision" in counts else {})


def vision_metadata(vision: dict[str, Any], tokens: int) -> Shown:
    """What images cost, under the configured scheme and under every other."""
    rows = [{"scheme": name, "tokens": of} for name, of in sorted(vision["image_tokens_by_scheme"].items())]
    shown = figures(vision, ("images", "image_tokens", "images_refused"))
    shown |= {"vision_scheme": vision["scheme"], "vision_share": vision["image_tokens"] / max(tokens, 1)}
    shown |= {"image_tokens_by_scheme": table(rows, ["scheme", "tokens"])}
    return shown | ({"vision_warnings": " ".join(vision["warnings"])} if vision["warnings"] else {})


COMPRESSION = ["setting", "configured", "image_tokens", "vision_share", "packs_at_least", "largest_image"]


def packing_metadata(built: Built) -> Shown:
    found = built.counts["figures"]
    names = ["utilization", "packs", "tokens", "documents", "padding", "needless_cuts", "unavoidable_cuts"]
    names += ["images", "vision_share"] if found.get("images") else []
    rows = [{"corpus_and_split": place, **of} for place, of in built.counts["by_split"].items()]
    fill = built.counts["packs_by_fill"]
    vision = built.counts.get("vision") or {"compression": [], "warnings": []}
    options = {"compression": table(vision["compression"], COMPRESSION)} if vision["compression"] else {}
    options |= {"vision_warnings": " ".join(vision["warnings"])} if vision["warnings"] else {}
    return {
        **options,
        "fill": dg.MetadataValue.md(bars(fill, "packs by fill, from empty to full")),
        **figures(found, (*names, "tokens_lost", "tokens_dropped")),
        "packs_by_fill": table(fill_rows(fill), ["filled", "packs", "share", "bar"]),
        "by_split": table(rows, ["corpus_and_split", *names]),
    }


def fill_rows(fill: list[int]) -> list[Shown]:
    """A row a tenth, the fullest first."""
    steps = len(fill) - 1
    total = max(sum(fill), 1)
    names = [f"{100 * step // steps} to {100 * (step + 1) // steps} %" for step in range(steps)]
    rows = [
        {"filled": name, "packs": packs, "share": packs / total, "bar": "█" * round(BAR * packs / total)}
        for name, packs in zip([*names, "full"], fill, strict=True)
    ]
    return rows[::-1]


def bar(row: Shown, name: str, rows: list[Shown]) -> str:
    longest = max(row[name] or 0 for row in rows)
    return "█" * round(BAR * (row[name] or 0) / longest) if longest else ""


def export_metadata(built: Built) -> Shown:
    counts = built.counts
    length, left_out = counts["sequence_length"], counts["left_out_of_blend"]
    padding = {prefix: of["padding"] for prefix, of in counts["prefixes"].items()}
    rows = [
        {
            "prefix": prefix,
            "packs": packs,
            "tokens": packs * length - padding[prefix],
            "padding": padding[prefix],
            "in_blend": "no, too few packs" if prefix in left_out else "yes",
        }
        for prefix, packs in counts["packs"].items()
    ]
    rows = [row | {"bar": bar(row, "packs", rows)} for row in rows]
    return {
        **{name: sum(row[name] for row in rows) for name in ("packs", "tokens", "padding")},
        "left_out_of_blend": len(left_out),
        **figures(counts, ("sequence_length", "vocab_size", "dtype")),
        "prefixes": table(rows, ["prefix", "packs", "bar", "tokens", "padding", "in_blend"]),
        "megatron_arguments": dg.MetadataValue.path(str(built.folder / "megatron_arguments.sh")),
    }


OF_STAGE: dict[str, Callable[[Built], Shown]] = {
    corpus.STAGE: corpus_metadata,
    normalize.STAGE: normalization_metadata,
    tokenizer.STAGE: tokenizer_metadata,
    report.STAGE: report_metadata,
    shards.STAGE: shards_metadata,
    pack.STAGE: packing_metadata,
    export.STAGE: export_metadata,
}


def table(rows: list[Shown], columns: list[str]) -> Any:
    """Rows as a table in the UI; a value that is no number and no string is shown as JSON."""
    records = [dg.TableRecord({name: plain(row.get(name)) for name in columns}) for row in rows]
    kinds = {int: "int", float: "float"}
    first = records[0].data if records else {}
    schema = [dg.TableColumn(name, kinds.get(type(first.get(name)), "string")) for name in columns]
    return dg.MetadataValue.table(records, dg.TableSchema(schema))


def plain(value: Any) -> str | int | float:
    if isinstance(value, float):
        return round(value, DIGITS)
    return value if isinstance(value, str | int) else orjson.dumps(value).decode()
