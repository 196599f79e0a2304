"""What Dagster's UI shows of a built asset: figures that plot, tables, paths and the report's page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg
import orjson

from tokpack_core.stages import export, normalize, pack, report
from tokpack_core.stages.asset import Built, read_json

Shown = dict[str, Any]


def asset_metadata(built: Built) -> Shown:
    """Metadata of one materialization: plain Python values and MetadataValues."""
    shown: Shown = {
        "digest": built.entry.object.digest,
        "path": dg.MetadataValue.path(str(built.folder)),
        "size_bytes": built.manifest.size + built.units_bytes,
        "units_run": built.units_run,
        "units_reused": built.units_reused,
    }
    if built.stale:
        shown["stale"] = f"kept, though {built.stale}; train again with `tokpack build --retrain {built.asset}`"
    if "tokenizer" in built.counts:
        shown["tokenizer"] = str(built.counts["tokenizer"])
    of_stage = OF_STAGE.get(built.entry.object.stage)
    return shown | numbers(built.counts) | (of_stage(built) if of_stage else {})


def numbers(counts: Mapping[str, Any]) -> dict[str, int | float]:
    return {name: value for name, value in counts.items() if type(value) in (int, float)}


def normalization_metadata(built: Built) -> Shown:
    return {name: dg.MetadataValue.json(built.counts[name]) for name in ("problems", "normalization")}


def report_metadata(built: Built) -> Shown:
    figures = read_json(built.folder / "report.json")
    languages = figures["test"]["languages"]
    return {
        "report": dg.MetadataValue.url((built.folder / "report.html").as_uri()),
        "vocabulary_utilization": figures["sample"]["vocabulary_utilization"],
        "bytes_per_token": table(languages, ["lang", "documents", "bytes", "tokens", "bytes_per_token"]),
    }


def packing_metadata(built: Built) -> Shown:
    rows = [{"split": name, **figures} for name, figures in built.counts["by_split"].items()]
    columns = ["split", "documents", "tokens", "packs", "utilization", "needless_cuts", "unavoidable_cuts"]
    return numbers(built.counts["figures"]) | {"by_split": table(rows, columns)}


def export_metadata(built: Built) -> Shown:
    rows = [{"prefix": prefix, "packs": packs} for prefix, packs in built.counts["packs"].items()]
    arguments = built.folder / "megatron_arguments.sh"
    return {
        "prefixes": table(rows, ["prefix", "packs"]),
        "megatron_arguments": dg.MetadataValue.path(str(arguments)),
    }


OF_STAGE: dict[str, Callable[[Built], Shown]] = {
    normalize.STAGE: normalization_metadata,
    report.STAGE: report_metadata,
    pack.STAGE: packing_metadata,
    export.STAGE: export_metadata,
}


def table(rows: list[dict[str, Any]], columns: list[str]) -> Any:
    """Rows as a table in the UI; a value that is no number and no string is shown as JSON."""
    records = [dg.TableRecord({name: plain(row.get(name)) for name in columns}) for row in rows]
    kinds = {int: "int", float: "float"}
    first = records[0].data if records else {}
    schema = [dg.TableColumn(name, kinds.get(type(first.get(name)), "string")) for name in columns]
    return dg.MetadataValue.table(records, dg.TableSchema(schema))


def plain(value: Any) -> str | int | float:
    return value if isinstance(value, str | int | float) else orjson.dumps(value).decode()
