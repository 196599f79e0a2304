"""`tokpack demo`: real text, a ready configuration, every asset, and a summary a person understands."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tokpack_assets.building import build_with_bar, raise_failures
from tokpack_assets.environment import engine_of
from tokpack_assets.run import BuildOutcome
from tokpack_core.config.files import load_project
from tokpack_core.corpus.demo import DemoCorpus, build_demo_corpus
from tokpack_core.stages.asset import read_json

TOKENIZER = "demo_bpe"
VOCABULARY = {False: 16_000, True: 8_000}
"""By offline: the standard library alone is half the text."""
DATASET = "demo_4k"
SEQUENCE_LENGTH = 4096
RARE_BELOW = 5
SHARES = {"zh": 0.3, "en": 0.3, "code": 0.2, "multilingual": 0.2}
EPOCHS = {"zh": 1.0, "en": 1.0, "code": 1.0, "multilingual": 1.0}
MAIN_LANGUAGES = ("zh", "en", "code")
LISTED_LANGUAGES = 16


def run_demo(folder: Path, offline: bool, compare: bool, workers: int | None, json: bool) -> None:
    """Builds the demo in `folder`; what is there already is reused.

    Raises:
        TokpackError: there is no network for the corpus, or an asset failed.
    """
    begin = time.monotonic()
    console = Console(stderr=True, quiet=json)
    folder = folder.absolute()
    console.print(f"[bold]1[/] demo corpus in {folder}", highlight=False)
    corpus = build_demo_corpus(
        folder, cache_folder(), offline, lambda step: console.print(f"  {step}", highlight=False)
    )
    use_folder(folder)
    (folder / "configs").mkdir(exist_ok=True)
    (folder / "configs" / "demo.yaml").write_text(demo_config(corpus, offline), encoding="utf-8")
    console.print("[bold]2[/] assets", highlight=False)
    project = load_project(folder / "configs")
    outcome = build_with_bar(project, folder / "store", [], False, engine_of(project, workers=workers), json)
    raise_failures(outcome)
    summary = summarize(outcome, corpus)
    if compare:
        from tokpack_assets.demo_comparison import compare_families

        console.print("[bold]3[/] a tokenizer of every family", highlight=False)
        config = demo_config(corpus, offline)
        summary["comparison"] = compare_families(folder, config, shares(corpus), VOCABULARY[offline], workers, json)
    summary |= {
        "seconds": round(time.monotonic() - begin, 1),
        "folder": str(folder),
    }
    if json:
        sys.stdout.buffer.write(orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n")
    else:
        show_summary(summary, folder, Console())


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tokpack" / "demo"


def use_folder(folder: Path) -> None:
    """The demo has configuration, store and Dagster instance of its own."""
    os.environ["TOKPACK_CONFIGS"] = str(folder / "configs")
    os.environ["TOKPACK_STORE"] = str(folder / "store")
    os.environ.setdefault("DAGSTER_HOME", str(folder / "dagster_home"))


def demo_config(corpus: DemoCorpus, offline: bool) -> str:
    """A commented configuration in the form a user would write."""
    corpora = "".join(
        f"  {name}:\n    paths: {orjson.dumps(paths).decode()}\n    id_field: id\n    lang_field: lang\n"
        "    metadata_fields: [source]\n    normalize: {unicode: nfc}\n"
        "    splits: {train: 0.96, valid: 0.02, test: 0.02}\n"
        for name, paths in corpus.corpora.items()
    )
    epochs = ", ".join(f"{name}: {EPOCHS[name]}" for name in corpus.corpora)
    return f"""\
# The demo: edit it and run `tokpack build` in the folder above to see what is built again and what is not.
corpora:
{corpora}tokenizers:
  {TOKENIZER}:
    family: byte_bpe
    vocab_size: {VOCABULARY[offline]}
    train_on: {{{shares(corpus)}}}          # shares of the training sample
    sample_bytes: 12MB
    special_tokens: {{eod: "<|endoftext|>", pad: "<|pad|>"}}
    checks: {{rare_below: {RARE_BELOW}, max_rare_token_share: 0.10, min_vocabulary_utilization: 0.90}}
datasets:
  {DATASET}:
    tokenizer: {TOKENIZER}
    mixture: {{{epochs}}}           # epochs of each corpus
    packing: {{strategy: best_fit, sequence_length: {SEQUENCE_LENGTH}}}
    checks: {{min_packing_utilization: 0.95}}
"""


def shares(corpus: DemoCorpus) -> str:
    return ", ".join(f"{name}: {SHARES[name]}" for name in corpus.corpora)


def summarize(outcome: BuildOutcome, corpus: DemoCorpus) -> dict[str, Any]:
    """The figures of the demo as plain data."""
    assets = outcome.assets
    folder = Path(assets[f"vocabulary_report/{TOKENIZER}"]["path"])
    report = read_json(folder / "report.json")
    packed = assets[f"packed_sequences/{DATASET}"]
    dataset = assets[f"megatron_dataset/{DATASET}"]
    shards = [shown for key, shown in assets.items() if key.startswith("tokenized_shards/")]
    return {
        "languages": len(corpus.bytes_by_language),
        "text_bytes": sum(corpus.bytes_by_language.values()),
        "documents": sum(shown["documents"] for shown in shards),
        "tokens": sum(shown["tokens"] for shown in shards),
        "bytes_per_token": {row["lang"]: row["bytes_per_token"] for row in report["sample"]["languages"]},
        "vocab_size": report["vocabulary"]["size"],
        "vocabulary_utilization": report["sample"]["vocabulary_utilization"],
        "rare_token_share": next(row["share"] for row in report["sample"]["rare"] if row["below"] == RARE_BELOW),
        "packs": packed["packs"],
        "packing_utilization": packed["utilization"],
        "needless_cuts": packed["needless_cuts"],
        "unavoidable_cuts": packed["unavoidable_cuts"],
        "tokens_lost": packed["tokens_lost"],
        "report": str(folder / "report.html"),
        "dataset": dataset["path"],
        "prefixes": sorted(read_json(Path(dataset["path"]) / "manifest.json")["counts"]["packs"]),
        "units_run": outcome.total("units_run"),
        "units_reused": outcome.total("units_reused"),
    }


def show_summary(summary: dict[str, Any], folder: Path, console: Console) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2))
    text = f"{summary['text_bytes'] / 1e6:,.1f} MB in {summary['languages']} languages"
    rows = {
        "text": f"{text}, {summary['documents']:,} documents",
        "tokens": f"{summary['tokens']:,}",
        "bytes per token": bytes_per_token(summary["bytes_per_token"]),
        "vocabulary": f"{summary['vocab_size']:,} entries, {summary['vocabulary_utilization']:.1%} of them used, "
        f"{summary['rare_token_share']:.1%} rare (seen fewer than {RARE_BELOW} times in the training sample)",
        "packs": f"{summary['packs']:,} of {SEQUENCE_LENGTH:,} tokens, {summary['packing_utilization']:.2%} filled",
        "cuts": f"{summary['needless_cuts']:,} needless, {summary['unavoidable_cuts']:,} of documents longer than a "
        f"pack, {summary['tokens_lost']:,} tokens lost",
        "work": f"{summary['units_run']} units run, {summary['units_reused']} reused, {summary['seconds']} s",
    }
    for name, value in rows.items():
        table.add_row(f"[bold]{name}[/]", value)
    console.print()
    console.print(table, highlight=False)
    console.print("\n[bold]The dataset, read by Megatron-Core as it is[/] (.bin/.idx, and _docs.bin/.idx by document)")
    for prefix in summary["prefixes"]:
        console.print(f"  {summary['dataset']}/{prefix}", highlight=False, soft_wrap=True, markup=False)
    if "comparison" in summary:
        console.print("\n[bold]Families of tokenizers compared[/], on text that none was trained on")
        for sentence in summary["comparison"]["findings"]:
            console.print(f"  {sentence}", highlight=False, markup=False)
        console.print(f"  {summary['comparison']['page']}", highlight=False, soft_wrap=True, markup=False)
    show_next_commands(summary, folder, console)


def bytes_per_token(by_language: dict[str, float]) -> str:
    """Chinese, English and code, then the others by amount of text, the many small ones as a range."""
    main = [lang for lang in MAIN_LANGUAGES if by_language.get(lang)]
    others = [lang for lang, value in by_language.items() if value and lang not in MAIN_LANGUAGES]
    listed = [f"{lang} {by_language[lang]:.2f}" for lang in main + others[: LISTED_LANGUAGES - len(main)]]
    small = sorted((by_language[lang], lang) for lang in others[LISTED_LANGUAGES - len(main) :])
    if small:
        (low, worst), (high, best) = small[0], small[-1]
        listed.append(f"and {len(small)} others from {low:.2f} ({worst}) to {high:.2f} ({best})")
    return ", ".join(listed)


def show_next_commands(summary: dict[str, Any], folder: Path, console: Console) -> None:
    tokpack = "tokpack" if shutil.which("tokpack") else str(Path(sys.argv[0]).absolute())
    dataset = f"megatron_dataset/{DATASET}"
    commands = {
        f"cd {folder}": "the commands below look for configs/ and store/ here",
        f"{tokpack} dev": "the Dagster UI: the graph, checks, history",
        f"{tokpack} lineage {dataset}": "which files and which tokenizer made it",
        f"{tokpack} verify {dataset}": "every digest and every index again",
        f"{tokpack} inspect {summary['dataset']}/en/train_{SEQUENCE_LENGTH}": "a pack, decoded",
        f"{tokpack} audit {dataset}": "documents encoded again and compared token by token",
        f"{tokpack} build": "again: nothing to do; edit configs/demo.yaml and see what is",
        f"xdg-open {summary['report']}": "the vocabulary report",
    }
    console.print("\n[bold]Next:[/]")
    for command, why in commands.items():
        console.print(Text.assemble(f"  {command}\n      ", (why, "dim")), soft_wrap=True)
