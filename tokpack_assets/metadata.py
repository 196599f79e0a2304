"""What Dagster's UI shows of a built asset: figures that plot, tables, paths and the report's page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg
import orjson

from tokpack_core.stages import export, report
from tokpack_core.stages.asset import Built, read_json


def asset_metadata(built: Built) -> dict[str, Any]:
    """Metadata of one materialization; everything is a plain Python value or a MetadataValue."""
    shown: dict[str, Any] = {
        "digest": built.entry.object.digest,
        "path": dg.MetadataValue.path(str(built.folder)),
        "size_bytes": built.manifest.size,
        "units_run": built.units_run,
        "units_reused": built.units_reused,
    }
    if built.stale:
        shown["stale"] = f"kept, though {built.stale}; retrain with `tokpack build --retrain {built.asset}`"
    stage = built.entry.object.stage
    shown |= numbers(built.counts)
    if "tokenizer" in built.counts:
        shown["tokenizer"] = str(built.counts["tokenizer"])
    if stage == report.STAGE:
        shown |= report_metadata(built)
    elif stage == "packed_sequences":
        shown |= numbers(built.counts["figures"])
        shown["by_split"] = table(
            [{"split": name, **figures} for name, figures in built.counts["by_split"].items()],
            ["split", "documents", "tokens", "packs", "utilization", "needless_cuts", "unavoidable_cuts"],
        )
    elif stage == export.STAGE:
        shown["packs"] = table(
            [{"prefix": k, "packs": v} for k, v in built.counts["packs"].items()], ["prefix", "packs"]
        )
        shown["megatron_arguments"] = dg.MetadataValue.path(str(built.folder / "megatron_arguments.sh"))
    elif stage == "normalized_corpus":
        shown["problems"] = dg.MetadataValue.json(built.counts["problems"])
        shown["normalization"] = dg.MetadataValue.json(built.counts["normalization"])
    return shown


def numbers(counts: Mapping[str, Any]) -> dict[str, int | float]:
    return {name: value for name, value in counts.items() if type(value) in (int, float)}


def report_metadata(built: Built) -> dict[str, Any]:
    figures = read_json(built.folder / "report.json")
    languages = figures["test"]["languages"]
    return {
        "report": dg.MetadataValue.url((built.folder / "report.html").as_uri()),
        "vocabulary_utilization": figures["sample"]["vocabulary_utilization"],
        "bytes_per_token": table(languages, ["lang", "documents", "bytes", "tokens", "bytes_per_token"]),
    }


def table(rows: list[dict[str, Any]], columns: list[str]) -> Any:
    """Rows as a table in the UI; numbers of other kinds than int, float and str are not shown."""
    records = [dg.TableRecord({name: plain(row.get(name)) for name in columns}) for row in rows]
    kinds = {int: "int", float: "float"}
    first = records[0].data if records else {}
    schema = [dg.TableColumn(name, kinds.get(type(first.get(name)), "string")) for name in columns]
    return dg.MetadataValue.table(records, dg.TableSchema(schema))


def plain(value: Any) -> str | int | float:
    return value if isinstance(value, str | int | float) else orjson.dumps(value).decode()
