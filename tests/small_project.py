"""A small real project: the standard library's documentation topics and source, as English and code."""

from __future__ import annotations

import inspect
import json
import pkgutil
from dataclasses import dataclass
from pathlib import Path
from pydoc_data import topics

from tokpack_core.config import Project
from tokpack_core.config.files import load_project
from tokpack_core.engine import LocalEngine
from tokpack_core.stages.asset import Built, Workplace
from tokpack_core.stages.graph import plan_graph, select
from tokpack_core.store.store import open_store

CONFIG = """\
corpora:
  docs:
    paths: ["data/docs/*.jsonl"]
    id_field: id
    lang_field: lang
    splits: {train: 0.8, valid: 0.1, test: 0.1}
  code:
    paths: [data/code]
    lang: code
    splits: {train: 0.8, valid: 0.1, test: 0.1}
tokenizers:
  bpe_600:
    family: byte_bpe
    vocab_size: 600
    train_on: {docs: 0.7, code: 0.3}
    sample_bytes: 200KB
    special_tokens: {eod: "<|endoftext|>", pad: "<|pad|>"}
    checks: {rare_below: 2, max_rare_token_share: 0.5, min_vocabulary_utilization: 0.5}
datasets:
  base:
    tokenizer: bpe_600
    mixture: {docs: 2.0, code: 1.0}
    packing: {strategy: best_fit, sequence_length: 512}
    checks: {min_packing_utilization: 0.5}
"""


@dataclass(frozen=True)
class SmallProject:
    """A folder with data and configuration; `build` runs the graph as Dagster does, without Dagster."""

    folder: Path

    @property
    def configs(self) -> Path:
        return self.folder / "configs"

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def load(self) -> Project:
        return load_project(self.configs)

    def work(self, workers: int = 1, retrain: bool = False) -> Workplace:
        store = open_store(self.store, create=True)
        return Workplace(self.load(), store, LocalEngine(workers), lambda _: None, None, retrain)

    def build(self, *names: str, workers: int = 1, retrain: bool = False) -> dict[str, Built]:
        work = self.work(workers, retrain)
        return {plan.key: plan.build(work) for plan in select(plan_graph(work.project), list(names))}

    def edit(self, old: str, new: str) -> None:
        path = self.configs / "project.yaml"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")


def write_small_project(folder: Path) -> SmallProject:
    for name in ("configs", "data/docs", "data/code"):
        (folder / name).mkdir(parents=True)
    (folder / "configs" / "project.yaml").write_text(CONFIG, encoding="utf-8")
    documents = [
        {"id": name, "text": text, "lang": "en"} for name, text in sorted(topics.topics.items()) if len(text) < 20_000
    ]
    documents.append({"id": "empty", "text": "", "lang": "en"})
    documents.append({"id": "decomposed", "text": "cafe\u0301 A\u030angstro\u0308m", "lang": "fr"})
    for number in range(3):
        lines = [json.dumps(document) + "\n" for document in documents[number::3]]
        (folder / "data" / "docs" / f"{number}.jsonl").write_text("".join(lines), encoding="utf-8")
    for module in ("json.decoder", "heapq", "bisect", "textwrap", "shlex", "queue", "sched", "csv", "glob", "fnmatch"):
        source = inspect.getsource(pkgutil.resolve_name(module))
        (folder / "data" / "code" / f"{module}.txt").write_text(source, encoding="utf-8")
    return SmallProject(folder)
