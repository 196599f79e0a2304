"""`tokpack train`: a tokenizer from plain files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from tokpack_core.commands.opened_tokenizer import saved_tokenizer
from tokpack_core.commands.output import MANIFEST_ENDING, new_output
from tokpack_core.commands.progress import OnDone, progress
from tokpack_core.commands.reading import Reading, normalized
from tokpack_core.commands.run_manifest import write_manifest
from tokpack_core.config import MODULAR, SpecialTokens, TrainConfig, UnicodeForm
from tokpack_core.corpus.content import per_text_block, text_blocks
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.checked_export import FirstTexts, FirstTextsByDomain, save_checked
from tokpack_core.tokenizers.domains import by_domain
from tokpack_core.tokenizers.modular.language_texts import LabelledTexts
from tokpack_core.tokenizers.protocol import Tokenizer, missing_entries


def train(
    config: TrainConfig,
    unicode: UnicodeForm,
    reading: Reading,
    output: Path,
    quiet: bool,
    auto_tokenizer: bool | None = None,
) -> dict[str, Any]:
    """Trains on every document and writes the folder `output` and its manifest; returns the manifest.

    `auto_tokenizer`: whether transformers open it too before it is published (see `checked_export`).

    Raises:
        InputError: the text cannot be read or gives no such tokenizer, or the output exists.
    """
    with new_output(output, ("", MANIFEST_ENDING)) as draft:
        draft.mkdir()
        with progress("reading", reading.bytes, "B", quiet) as on_done:
            tokenizer, sample = trained(config, unicode, reading, on_done)
        compared = save_checked(tokenizer, draft, sample, auto_tokenizer)
        counts = {"vocab_size": tokenizer.vocab_size, "reading": reading.as_json(), **tokenizer.training}
        counts |= {"export_check": compared} | missing_entries(config, tokenizer)
        described = saved_tokenizer(draft, tokenizer).as_json() | {"path": str(output.absolute())}
        parameters = config.parameters() | {"unicode": unicode} | reading.parameters()
        return write_manifest(draft, "train", parameters, reading.inputs, counts, described)


def trained(config: TrainConfig, unicode: UnicodeForm, reading: Reading, on_done: OnDone) -> tuple[Tokenizer, pa.Array]:
    """A tokenizer and the first of its training text."""
    if config.family in MODULAR:
        first = FirstTexts()
        tokenizer = registry.train_modular(config, labelled(reading, unicode, on_done), unicode, first.keep)
        return tokenizer, first.kept()
    if config.allocation is None:
        read = FirstTexts(texts(reading, unicode, on_done))
        return registry.train(config, iter(read), unicode), read.kept()
    domains = FirstTextsByDomain(texts_by_domain(config, reading, unicode, on_done), config.quotas())
    return registry.train_allocated(config, iter(domains), unicode), domains.kept()


def texts_by_domain(
    config: TrainConfig, reading: Reading, unicode: UnicodeForm, on_done: OnDone
) -> Iterator[tuple[str, pa.Array]]:
    """Files stand in for corpora, by their name without endings or by the folder that they are in."""
    for batch in normalized(reading.batches(on_done), unicode):
        path = Path(reading.inputs[-1]["path"])
        sources = (path.name.split(".")[0], path.parent.name)
        yield from by_domain(text_blocks(batch), per_text_block(batch, "lang"), sources, config.quotas())


def texts(reading: Reading, unicode: UnicodeForm, on_done: OnDone) -> Iterator[pa.Array]:
    return (batch for batch, _ in labelled(reading, unicode, on_done))


def labelled(reading: Reading, unicode: UnicodeForm, on_done: OnDone) -> Iterator[LabelledTexts]:
    for batch in normalized(reading.batches(on_done), unicode):
        yield text_blocks(batch), per_text_block(batch, "lang")


def train_config(
    family: str, vocab_size: int | None, special_tokens: list[str], options: dict[str, Any]
) -> TrainConfig:
    """`options` by the names of the configuration; None is one that was not given.

    Raises InputError for settings that do not go together.
    """
    given = {name: value for name, value in options.items() if value is not None}
    try:
        roles = dict(parse_special_token(text) for text in special_tokens)
        settings = {"family": family, "special_tokens": SpecialTokens(**roles)}
        settings |= {} if vocab_size is None else {"vocab_size": vocab_size}
        return TrainConfig.model_validate(settings | given)
    except ValidationError as error:
        first = error.errors()[0]
        if first["loc"][:1] == ("transition_size",):
            raise InputError(f"transition_size: {first['input']!r} is neither a size, 1 or more, nor `auto`") from None
        where = " ".join(map(str, first["loc"])) or family
        raise InputError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None


def parse_allocation(quotas: list[str]) -> dict[str, int] | None:
    """`DOMAIN=ENTRIES` each; None for none."""
    found = {}
    for text in quotas:
        domain, _, entries = text.rpartition("=")
        if not domain or not entries.isdecimal() or domain in found:
            raise InputError(f"--allocation {text}: write DOMAIN=ENTRIES, each domain once, as en=20000")
        found[domain] = int(entries)
    return found or None


def named_languages(text: str | None) -> list[str | list[str]] | None:
    """`A,B+C,*` as the configuration has it."""
    if text is None:
        return None
    return [entry.split("+") if "+" in entry else entry for entry in text.split(",")]


def parse_special_token(text: str) -> tuple[str, str]:
    role, equals, string = text.partition("=")
    if role not in SpecialTokens.model_fields or not equals or not string:
        known = ", ".join(SpecialTokens.model_fields)
        raise InputError(
            f"--special-token {text}: write ROLE=STRING with one of the roles {known}, as eod=<|endoftext|>"
        )
    return role, string
