"""`tokpack demo --compare`: a tokenizer of every kind, trained in the graph on the demo's text, and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokpack_assets.building import build_with_bar, raise_failures
from tokpack_assets.environment import engine_of
from tokpack_core.commands.compare import write_outputs
from tokpack_core.comparison.findings import findings
from tokpack_core.config.files import load_project
from tokpack_core.stages.asset import Workplace
from tokpack_core.stages.comparison import compare_tokenizers
from tokpack_core.stages.tokenizer import asset_key
from tokpack_core.store.store import open_store

BASELINE = "byte_bpe"
KINDS: dict[str, tuple[str, ...]] = {
    BASELINE: ("family: byte_bpe",),
    "picky_bpe": ("family: byte_bpe", "delete_threshold: 0.9"),
    "sentencepiece_bpe": ("family: sentencepiece_bpe",),
    "sentencepiece_unigram": ("family: sentencepiece_unigram",),
    "wordpiece": ("family: wordpiece",),
    "character": ("family: character",),
    "word": ("family: word",),
    "superbpe": ("family: superbpe",),
    "superbpe_of_words": ("family: superbpe", "joins: words"),
    "boundless_bpe": ("family: boundless_bpe",),
    "boundless_bpe_by_script": ("family: boundless_bpe", "script_aware: true"),
    "modular_bpe": ("family: modular_bpe", "languages: {modules}"),
    "modular_unigram": ("family: modular_unigram", "languages: {modules}"),
    "cnf_mce": ("family: cnf_mce",),
    "litetoken": ("family: litetoken", f"base: {BASELINE}"),
    "supertokens": ("family: supertokens", f"base: {BASELINE}"),
    "minimum_cost": ("family: minimum_cost", f"base: {BASELINE}"),
}
"""Every kind of tokenizer, with the settings that make it one; what has no base learns a vocabulary of a given size."""
MODULES = {"zh": "[zh, zh-hant]", "en": "en", "code": "code"}
"""The languages of a corpus that has a sub-tokenizer of its own; all others have one together."""


def compare_families(
    folder: Path, demo: str, shares: str, vocab_size: int, workers: int | None, quiet: bool
) -> dict[str, Any]:
    """Writes configs_comparison/ and comparison/ into the demo's folder; returns the findings and where they are.

    demo: the demo's own configuration, of which the corpora are used. Raises TokpackError if training fails.
    """
    configs = folder / "configs_comparison"
    configs.mkdir(exist_ok=True)
    (configs / "demo.yaml").write_text(demo, encoding="utf-8")
    (configs / "comparison.yaml").write_text(comparison_config(shares, vocab_size), encoding="utf-8")
    project = load_project(configs)
    engine = engine_of(project, workers=workers)
    keys = [asset_key(kind) for kind in KINDS]
    raise_failures(build_with_bar(project, folder / "store", keys, False, engine, quiet))
    work = Workplace(project, open_store(folder / "store"), engine, lambda now: None)
    comparison = compare_tokenizers(work, list(KINDS), BASELINE)
    output = folder / "comparison"
    output.mkdir(exist_ok=True)
    write_outputs(output, comparison)
    return {"findings": findings(comparison), "page": str(output / "comparison.html")}


def comparison_config(shares: str, vocab_size: int) -> str:
    lines = ["# A tokenizer of every kind, for `tokpack demo --compare`.", "tokenizers:"]
    named = [module for corpus, module in MODULES.items() if f"{corpus}:" in shares.split()]
    modules = f"[{', '.join(named)}, '*']"
    for kind, settings in KINDS.items():
        lines.append(f"  {kind}:")
        lines += [f"    {setting.format(modules=modules)}" for setting in settings]
        lines += [f"    train_on: {{{shares}}}", "    sample_bytes: 12MB"]
        if not any(setting.startswith("base:") for setting in settings):
            lines += [f"    vocab_size: {vocab_size}", '    special_tokens: {eod: "<|endoftext|>"}']
    return "\n".join(lines) + "\n"
