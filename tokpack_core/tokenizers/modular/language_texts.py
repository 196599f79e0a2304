"""Training text apart by language, kept in temporary files while languages are gone through one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.bpe.text_spool import TextSpool, text_spool
from tokpack_core.config.train import ALL_OTHERS, Languages
from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.training_text import NO_TEXT

HIGH_BIT = np.uint8(0x80)
LabelledTexts = tuple[pa.Array, pa.Array]
"""Texts (string array without nulls) and the language of each (string array; null: none)."""


class LanguageTexts:
    """What was read, by module: a language, or several that have one sub-tokenizer together."""

    def __init__(self, spools: dict[tuple[str, ...], TextSpool]) -> None:
        self._spools = spools

    @property
    def modules(self) -> list[tuple[str, ...]]:
        """The languages of each, in the order in which they are trained."""
        return list(self._spools)

    def texts(self, module: tuple[str, ...]) -> Iterator[pa.Array]:
        """All text of a module as string arrays, in the order of its documents; it may be read again and again."""
        for array in self._spools[module].again():
            yield array.cast(pa.large_string())


@contextmanager
def by_language(texts: Iterator[LabelledTexts], languages: Languages | None) -> Iterator[LanguageTexts]:
    """Reads all texts. `languages`: the modules, in their order; None: one for each language, by `native_first`.

    Raises InputError for a document without a language or of one that no module has, and for a language without text.
    """
    modules = {language: place for place, named in enumerate(languages or ()) for language in as_tuple(named)}
    with ExitStack() as files:
        spools: dict[int | str, TextSpool] = {}
        sizes: Counter[str] = Counter()
        high: Counter[str] = Counter()
        for batch, langs in texts:
            refuse_unlabelled(langs)
            for language in pc.unique(langs).to_pylist():
                module = language if languages is None else modules.get(language, modules.get(ALL_OTHERS))
                if module is None:
                    raise InputError(
                        f"the training sample holds documents of language {language!r}, which `languages` does not "
                        f"name: add it there, or {ALL_OTHERS!r} for all others, or leave its corpus out"
                    )
                if module not in spools:
                    spools[module] = files.enter_context(text_spool())
                own = batch.filter(pc.equal(langs, language))
                spools[module].keep(own)
                data, _ = text_buffers(own)
                sizes[language] += data.size
                high[language] += int(np.count_nonzero(data & HIGH_BIT))
        for spool in spools.values():
            spool.close()
        if not any(sizes.values()):
            raise InputError(NO_TEXT)
        for language in sizes if languages is None else modules:
            if not sizes[language] and language != ALL_OTHERS:
                raise InputError(
                    f"the training sample holds no text of language {language!r}: check the corpora, or leave it out "
                    "of `languages`"
                )
        if languages is None:
            yield LanguageTexts({(language,): spools[language] for language in native_first(high, sizes)})
            return
        others = tuple(sorted(set(sizes) - set(modules)))
        named = [others if entry == ALL_OTHERS else as_tuple(entry) for entry in languages]
        yield LanguageTexts({module: spools[place] for place, module in enumerate(named) if module})


def as_tuple(named: str | tuple[str, ...]) -> tuple[str, ...]:
    return (named,) if isinstance(named, str) else named


def native_first(high: Mapping[str, int], languages: Iterable[str]) -> list[str]:
    """Languages by how many bytes they have that are not ASCII, the most first, and by name.

    What the first ones learn the later ones share. A script of characters of several bytes is best learned where it is
    at home: the few Chinese or Thai characters in code or in English would teach pieces of characters that do not fit.
    """
    return sorted(languages, key=lambda language: (-high[language], language))


def refuse_unlabelled(langs: pa.Array) -> None:
    if langs.null_count:
        raise InputError(
            f"{langs.null_count} documents of a batch have no language, and a modular tokenizer is trained by "
            "language: name the field that holds it as `lang_field`, or the language of the whole corpus as `lang`"
        )
