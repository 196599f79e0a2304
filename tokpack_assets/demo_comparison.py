"""`tokpack demo --compare`: a tokenizer of every family, trained in the graph on the demo's text, and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from tokpack_assets.building import build_with_bar, raise_failures
from tokpack_core.commands.compare import write_outputs
from tokpack_core.comparison.findings import findings
from tokpack_core.config import Family
from tokpack_core.config_files import load_project
from tokpack_core.engine import default_engine
from tokpack_core.stages.asset import Workplace
from tokpack_core.stages.comparison import compare_tokenizers
from tokpack_core.stages.tokenizer import asset_key
from tokpack_core.store.store import open_store

BASELINE = "byte_bpe"
LEFT_OUT = ("pretrained", "character", "word")
"""Nothing to train, and no size to compare at."""


def families() -> list[str]:
    """The baseline first."""
    return [BASELINE, *(family for family in get_args(Family) if family not in (BASELINE, *LEFT_OUT))]


def compare_families(
    folder: Path, demo: str, shares: str, vocab_size: int, workers: int | None, quiet: bool
) -> dict[str, Any]:
    """Writes configs_comparison/ and comparison/ into the demo's folder; returns the findings and where they are.

    demo: the demo's own configuration, of which the corpora are used. Raises TokpackError if training fails.
    """
    configs = folder / "configs_comparison"
    configs.mkdir(exist_ok=True)
    names = {family: f"compare_{family}" for family in families()}
    (configs / "demo.yaml").write_text(demo, encoding="utf-8")
    (configs / "comparison.yaml").write_text(comparison_config(names, shares, vocab_size), encoding="utf-8")
    project = load_project(configs)
    keys = [asset_key(name) for name in names.values()]
    raise_failures(build_with_bar(project, folder / "store", keys, False, workers, quiet))
    work = Workplace(project, open_store(folder / "store"), default_engine(), lambda now: None)
    comparison = compare_tokenizers(work, list(names.values()), names[BASELINE])
    output = folder / "comparison"
    output.mkdir(exist_ok=True)
    write_outputs(output, comparison)
    return {"findings": findings(comparison), "page": str(output / "comparison.html")}


def comparison_config(names: dict[str, str], shares: str, vocab_size: int) -> str:
    tokenizers = "".join(
        f"  {name}:\n    family: {family}\n    vocab_size: {vocab_size}\n    train_on: {{{shares}}}\n"
        f'    sample_bytes: 12MB\n    special_tokens: {{eod: "<|endoftext|>"}}\n'
        for family, name in names.items()
    )
    return f"# A tokenizer of every family, for `tokpack demo --compare`.\ntokenizers:\n{tokenizers}"
