"""The asset graph that a configuration gives: every asset, what it stands on, how it is built and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tokpack_core.config import Project
from tokpack_core.config.faults import nearest
from tokpack_core.errors import ConfigError
from tokpack_core.stages import corpus, export, export_checks, normalize, pack, report, report_checks, shards, tokenizer
from tokpack_core.stages.asset import Built, Workplace, build_under_lease
from tokpack_core.store.actions import json_digest
from tokpack_core.verdict import Verdict


@dataclass(frozen=True)
class AssetPlan:
    """One asset of the graph.

    Attributes:
        stage: name of the kind of asset.
        upstream: keys of the assets it reads.
        code_version: the stage's number and the digest of its parameters.
        settings: these parameters, as the UI shows them.
        check_names: checks whose verdicts `verdicts` gives, and whether each blocks what is downstream.
        parts: what of the configuration it belongs to, by kind: corpus, tokenizer, dataset.
        owners: who answers for these.
    """

    key: str
    stage: str
    group: str
    description: str
    upstream: tuple[str, ...]
    code_version: str
    settings: dict[str, Any]
    build: Callable[[Workplace], Built]
    check_names: dict[str, bool] = field(default_factory=dict)
    verdicts: Callable[[Workplace], list[Verdict]] | None = None
    parts: dict[str, str] = field(default_factory=dict)
    owners: tuple[str, ...] = ()


PARTS: dict[str, tuple[str, ...]] = {
    corpus.STAGE: ("corpus",),
    normalize.STAGE: ("corpus",),
    tokenizer.STAGE: ("tokenizer",),
    report.STAGE: ("tokenizer",),
    shards.STAGE: ("tokenizer", "corpus"),
    pack.STAGE: ("dataset",),
    export.STAGE: ("dataset",),
}
"""What the names in the key of an asset are names of."""


def plan_graph(project: Project) -> list[AssetPlan]:
    """Every asset, upstream before downstream."""
    plans = [plan for name in project.corpora for plan in corpus_plans(project, name)]
    plans += [plan for name in project.by_descent() for plan in tokenizer_plans(project, name)]
    plans += [shards_plan(project, *pair) for pair in project.encoded_pairs()]
    plans += [plan for name in project.datasets for plan in dataset_plans(project, name)]
    return [complete(project, plan) for plan in plans]


def complete(project: Project, plan: AssetPlan) -> AssetPlan:
    parts = dict(zip(PARTS[plan.stage], plan.key.split("/")[1:], strict=True))
    sections: dict[str, Mapping[str, Any]] = {
        "corpus": project.corpora,
        "tokenizer": project.tokenizers,
        "dataset": project.datasets,
    }
    owners = dict.fromkeys(owner for kind, name in parts.items() for owner in sections[kind][name].owners)
    return replace(plan, build=partial(build_under_lease, plan.build), parts=parts, owners=tuple(owners))


def code_version(number: int, parameters: Any = None) -> str:
    return f"{number}-{json_digest(parameters)[:12]}"


def corpus_plans(project: Project, name: str) -> Iterator[AssetPlan]:
    config = project.corpora[name]
    yield AssetPlan(
        corpus.asset_key(name),
        corpus.STAGE,
        "corpora",
        f"Inventory of the source files of `{name}`: names, sizes and sha256.",
        (corpus.source_key(name),),
        code_version(corpus.VERSION, config.paths),
        {"paths": list(config.paths)},
        partial(corpus.build, corpus=name),
    )
    yield AssetPlan(
        normalize.asset_key(name),
        normalize.STAGE,
        "corpora",
        f"Documents of `{name}`, normalized ({config.normalize.unicode}), with ids and splits, as parquet parts.",
        (corpus.asset_key(name),),
        code_version(normalize.VERSION, normalize.parameters(config)),
        normalize.parameters(config),
        partial(normalize.build, corpus=name),
    )


def tokenizer_plans(project: Project, name: str) -> Iterator[AssetPlan]:
    config = project.tokenizers[name]
    corpora = tuple(normalize.asset_key(corpus_name) for corpus_name in project.training_corpora(name))
    bases = () if config.base is None else (tokenizer.asset_key(config.base),)
    yield AssetPlan(
        tokenizer.asset_key(name),
        tokenizer.STAGE,
        "tokenizers",
        f"The {config.family} tokenizer `{name}`; frozen until it is retrained on request.",
        (*bases, *(() if config.family in tokenizer.JUDGED_ONLY else corpora)),
        code_version(tokenizer.VERSION, tokenizer.parameters(project, name)),
        tokenizer.parameters(project, name),
        partial(tokenizer.build, tokenizer=name),
    )
    yield AssetPlan(
        report.asset_key(name),
        report.STAGE,
        "tokenizers",
        f"Vocabulary-utilization report of `{name}`; its checks stand before the shards as a gate.",
        (tokenizer.asset_key(name), *corpora),
        code_version(report.VERSION, report.parameters(config)),
        report.parameters(config),
        partial(report.build, tokenizer=name),
        report_checks.checks(config),
        partial(report.verdicts, tokenizer=name),
    )


def shards_plan(project: Project, name: str, corpus_name: str) -> AssetPlan:
    return AssetPlan(
        shards.asset_key(name, corpus_name),
        shards.STAGE,
        "datasets",
        f"Token shards of `{corpus_name}` by `{name}`: a Megatron .bin/.idx and documents.parquet a part.",
        (tokenizer.asset_key(name), report.asset_key(name), normalize.asset_key(corpus_name)),
        code_version(shards.VERSION, shards.parameters(project, name, corpus_name)),
        shards.framing_in(project, name, corpus_name).parameters(),
        partial(shards.build, tokenizer=name, corpus=corpus_name),
    )


def dataset_plans(project: Project, name: str) -> Iterator[AssetPlan]:
    config = project.datasets[name]
    encoded = tuple(shards.asset_key(config.tokenizer, corpus_name) for corpus_name in sorted(config.mixture))
    packing = {
        "packing": config.packing.model_dump(mode="json"),
        "corpora": sorted(config.mixture),
        "seed": config.seed,
    }
    yield AssetPlan(
        pack.asset_key(name),
        pack.STAGE,
        "datasets",
        f"Packing plans of `{name}`: {config.packing.strategy}, {config.packing.sequence_length} tokens a pack.",
        encoded,
        code_version(pack.VERSION, list(packing.values())),
        packing,
        partial(pack.build, dataset=name),
        pack.checks(config),
        partial(pack.verdicts, dataset=name),
    )
    yield AssetPlan(
        export.asset_key(name),
        export.STAGE,
        "datasets",
        f"Megatron .bin/.idx of `{name}`, one prefix a corpus and split, with document views and blend weights.",
        (pack.asset_key(name), *encoded),
        code_version(export.VERSION, config.mixture),
        {"mixture": config.mixture},
        partial(export.build, dataset=name),
        export_checks.CHECKS,
        partial(export_checks.verdicts, dataset=name),
    )


def select(plans: list[AssetPlan], names: list[str]) -> list[AssetPlan]:
    """The named assets and all they stand on, in order; everything if nothing is named.

    Raises:
        ConfigError: there is no asset of that name.
    """
    by_key = {plan.key: plan for plan in plans}
    unknown = [name for name in names if name not in by_key]
    if unknown:
        raise ConfigError(f"there is no asset {unknown[0]}{nearest(unknown[0], by_key)}")
    wanted: set[str] = set()
    queue = list(names or by_key)
    while queue:
        key = queue.pop()
        if key in by_key and key not in wanted:
            wanted.add(key)
            queue += by_key[key].upstream
    return [plan for plan in plans if plan.key in wanted]
