"""tokenizer_model/<tokenizer>: trained once on a sample of the train splits, or taken from existing files.

Frozen: while its own configuration stays the same, a tokenizer is kept though its training text, the code or a
library changed; it is then shown as stale, and trained again on request only.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from tokpack_core.config import MODULAR, Project, SpecialTokens, TrainConfig, UnicodeForm
from tokpack_core.engine import call_apart
from tokpack_core.errors import ConfigError, InputError
from tokpack_core.stages import normalize
from tokpack_core.stages.asset import Built, Workplace, current, finish, kept, note_version_read
from tokpack_core.stages.sample import (
    SamplePart,
    labelled_texts,
    plan_sample,
    sample_domains,
    sample_inputs,
    sample_texts,
)
from tokpack_core.stages.unit import Build, Unit
from tokpack_core.store import actions, history, objects
from tokpack_core.store.actions import Action, library_versions
from tokpack_core.store.files import sha256_of
from tokpack_core.store.objects import ObjectFile, ObjectRef
from tokpack_core.store.store import Store
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.checked_export import FirstTexts, FirstTextsByDomain, save_checked
from tokpack_core.tokenizers.agreement.encoder_choice import encoder_choice
from tokpack_core.tokenizers.derived import derive
from tokpack_core.tokenizers.protocol import Tokenizer, describe, missing_entries

STAGE = "tokenizer_model"
VERSION = 11
LARGE_SAMPLE = 10**6
"""Bytes from which training may take so long, in native code that heeds no interrupt, that it gets its own process."""
JUDGED_ONLY = ("pretrained", "minimum_cost")
"""Families that no text shapes; their sample is what they are judged on."""
LIBRARIES = ("tokenizers", "sentencepiece", "tiktoken")
loading = threading.Lock()
REPORTED_BY_CONFIG = {
    "train_on",
    "sample_bytes",
    "seed",
    "bos",
    "encode_by_language",
    "vision",
    "retrain",
    "checks",
    "owners",
    "parallel",
    "model",
}
"""Settings that shape the sample, the shards, the gates or the UI, but not how a tokenizer is trained."""


def asset_key(tokenizer: str) -> str:
    return f"tokenizer_model/{tokenizer}"


def train_config(project: Project, tokenizer: str) -> TrainConfig:
    config = project.tokenizers[tokenizer]
    shaping = config.model_dump(exclude=REPORTED_BY_CONFIG, exclude_unset=True)
    if config.seed_vocabulary is not None:
        shaping["seed_vocabulary"] = str(project.base / config.seed_vocabulary)
    return TrainConfig(**shaping)


def parameters(project: Project, tokenizer: str) -> dict[str, Any]:
    """All of a tokenizer's configuration that shapes its bytes; the text it is trained on is an input."""
    config = project.tokenizers[tokenizer]
    shaping = train_config(project, tokenizer).parameters()
    if config.family == "pretrained":
        return shaping | {"pretokenizer": registry.named_pretokenizer(config) or "of the file"}
    if config.base is not None:
        # A base that is trained anew for another configuration is not the one that was asked for.
        shaping |= {"base_parameters": parameters(project, config.base)}
    if config.family in JUDGED_ONLY:
        return shaping
    sample = {"train_on": project.training_corpora(tokenizer), "sample_bytes": config.sample_bytes}
    return shaping | sample | {"seed": config.seed, "unicode": project.unicode_form(tokenizer)}


def build(work: Workplace, tokenizer: str) -> Built:
    config = work.project.tokenizers[tokenizer]
    if config.family == "pretrained":
        return build_pretrained(work, tokenizer)
    sample = [] if config.family in JUDGED_ONLY else plan_sample(work, tokenizer)
    base = None if config.base is None else current_tokenizer(work, config.base)
    named = {} if base is None else {"base": str(base[0])}
    action = Action(
        STAGE,
        VERSION,
        parameters(work.project, tokenizer),
        {"sample": sample_inputs(sample)} | seed_inputs(train_config(work.project, tokenizer)) | named,
        library_versions(*LIBRARIES),
    )
    entry = history.latest(work.store, asset_key(tokenizer))
    if entry is not None and objects.exists(work.store, entry.object):
        before = actions.read_action(work.store, STAGE, entry.action)
        stale = why_stale(before, action)
        if before.parameters == action.parameters and not work.retrain and not (stale and config.retrain == "auto"):
            note_training_text(work, [SamplePart(**part) for part in before.inputs["sample"]])
            if config.base is not None:
                work.read[asset_key(config.base)] = ObjectRef.parse(before.inputs["base"]).digest
            return kept(work, asset_key(tokenizer), entry, stale)
    settings, reads = train_config(work.project, tokenizer), tuple(part.read for part in sample)
    build_model: Build = partial(train, work.store, settings, sample, config.seed, work.project.unicode_form(tokenizer))
    if base is not None:
        ref, base_folder = base
        build_model = partial(make_from, work.store, settings, base_folder, sample, config.seed)
        reads = (*reads, ObjectFile(ref))
    if sum(part.fraction * part.train_bytes for part in sample) >= LARGE_SAMPLE:
        build_model = partial(call_apart, build_model)
    return finish(work, asset_key(tokenizer), Unit(action, build_model, reads=reads))


def seed_inputs(config: TrainConfig) -> dict[str, str]:
    """The digest of the seed vocabulary, if there is one."""
    if config.seed_vocabulary is None:
        return {}
    path = Path(config.seed_vocabulary)
    if not path.is_file():
        raise InputError(f"there is no file {path}; correct `seed_vocabulary` in the configuration")
    return {"seed_vocabulary": sha256_of(path)}


def why_stale(before: Action, now: Action) -> str | None:
    """What changed since a frozen tokenizer was trained, in words, or None."""
    changes = {
        "its base": before.inputs.get("base") != now.inputs.get("base"),
        "its training text": before.inputs | {"base": None} != now.inputs | {"base": None},
        "the training code": before.code_version != now.code_version,
        "a library": before.libraries != now.libraries,
    }
    changed = [name for name, differs in changes.items() if differs]
    return f"{' and '.join(changed)} changed since it was trained" if changed else None


def note_training_text(work: Workplace, sample: list[SamplePart]) -> None:
    """Notes the versions of the corpora that a kept tokenizer was trained on as what it was made from."""
    used: dict[str, set[str]] = defaultdict(set)
    for part in sample:
        used[part.corpus].add(f"{part.object}/{part.file}")
    for corpus, parts in used.items():
        note_version_read(work, normalize.asset_key(corpus), normalize.listed_parts, parts)


def make_from(
    store: Store, config: TrainConfig, base: Path, sample: list[SamplePart], seed: int, folder: Path
) -> dict[str, Any]:
    """A tokenizer of a family that is made from another one."""
    texts = FirstTexts(sample_texts(store, sample, seed))
    derived = derive(config, registry.load(base), iter(texts))
    compared = save_checked(derived.tokenizer, folder, texts.kept())
    derived.save_report(folder)
    return describe(derived.tokenizer) | {"training": derived.figures, "export_check": compared}


def train(
    store: Store, config: TrainConfig, sample: list[SamplePart], seed: int, unicode: UnicodeForm, folder: Path
) -> dict[str, Any]:
    tokenizer, first_texts = trained(store, config, sample, seed, unicode)
    compared = save_checked(tokenizer, folder, first_texts)
    sample_bytes = round(sum(p.fraction * p.train_bytes for p in sample))
    told = {"training": dict(tokenizer.training), "sample_bytes": sample_bytes, "export_check": compared}
    return describe(tokenizer) | told | missing_entries(config, tokenizer)


def trained(
    store: Store, config: TrainConfig, sample: list[SamplePart], seed: int, unicode: UnicodeForm
) -> tuple[Tokenizer, pa.Array]:
    """A tokenizer and the first of its training text."""
    if config.family in MODULAR:
        first = FirstTexts()
        tokenizer = registry.train_modular(config, labelled_texts(store, sample, seed), unicode, first.keep)
        return tokenizer, first.kept()
    if config.allocation is None:
        texts = FirstTexts(sample_texts(store, sample, seed))
        return registry.train(config, iter(texts), unicode), texts.kept()
    domains = FirstTextsByDomain(sample_domains(store, sample, seed, config.quotas()), config.quotas())
    return registry.train_allocated(config, iter(domains), unicode), domains.kept()


def build_pretrained(work: Workplace, tokenizer: str) -> Built:
    config = work.project.tokenizers[tokenizer]
    path = work.project.base / str(config.path)
    if not path.exists():
        raise InputError(f"tokenizer {tokenizer}: there is no {path}; correct `path` in the configuration")
    files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else registry.files_of(path)
    inputs = {"files": {file.name: sha256_of(file) for file in files}}
    action = Action(STAGE, VERSION, parameters(work.project, tokenizer), inputs, library_versions(*LIBRARIES))
    build_model = partial(import_pretrained, train_config(work.project, tokenizer), path, tokenizer)
    return finish(work, asset_key(tokenizer), Unit(action, build_model))


def import_pretrained(config: TrainConfig, path: Path, name: str, folder: Path) -> dict[str, Any]:
    tokenizer = registry.load(path, config.special_tokens, registry.named_pretokenizer(config))
    if "eod" not in tokenizer.special_tokens:
        raise ConfigError(
            f"tokenizers.{name}: {path} names no end-of-document token; say which one it is in "
            "special_tokens: {eod: ...}"
        )
    tokenizer.save(folder)
    warnings = encoder_choice(tokenizer).warnings
    return describe(tokenizer) | ({"encoder_warnings": list(warnings)} if warnings else {})


def current_tokenizer(work: Workplace, tokenizer: str) -> tuple[ObjectRef, Path]:
    return current(work, asset_key(tokenizer))


def recorded_sample(work: Workplace, tokenizer: str) -> list[SamplePart]:
    """The sample that the newest version was trained on, or the one that it is judged on."""
    if work.project.tokenizers[tokenizer].family in JUDGED_ONLY:
        return plan_sample(work, tokenizer)
    entry = history.require_latest(work.store, asset_key(tokenizer))
    inputs = actions.read_action(work.store, STAGE, entry.action).inputs["sample"]
    return [SamplePart(**part) for part in inputs]


def load(folder: Path) -> Tokenizer:
    """A published tokenizer; its special tokens stand in its own files.

    The newest one is kept: choosing and proving its encoder costs a process more than a unit of text.
    """
    with loading:
        return load_anew(folder)


@lru_cache(maxsize=1)
def load_anew(folder: Path) -> Tokenizer:
    return registry.load(folder, SpecialTokens())
