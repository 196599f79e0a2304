"""SentencePiece BPE and Unigram with a quota of entries for each domain: a corpus, a language.

Each domain is trained on its own documents, and gives its characters first and then its other pieces, by turns (see
`quotas`): every domain so has all characters that it would have alone.

BPE: a domain's pieces come in the order in which it learned them. The library merges any two neighbours that make a
piece, the earliest piece first: so a piece whose characters the pieces before it leave in more than two parts is given
by no text, and is passed over. Its score is its place.

Unigram: a training decides what is left out when it knows how many pieces stay, so a domain is trained for as many as
it will give: for its quota, and again for as many more as other domains gave of it, until all quotas are full (three or
four rounds; on 2 MB each of English, Chinese and code 1 to 1.4 % fewer tokens than one training for as many pieces as
the whole has). Its pieces come by falling probability. The probabilities of all are then fitted on the text of all
domains (see `unigram_em`), and rounded (see `exact_scores`).

`reserved` are special tokens: those that are configured, SentencePiece's unk, and `<|reserved_0|>` and so on for the
rest, which are control symbols and have the last ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, count, islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.bpe.text_spool import TextSpool
from tokpack_core.config import TrainConfig, UnicodeForm
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.byteification.token_bytes import META_SPACE
from tokpack_core.tokenizers.metadata import Metadata
from tokpack_core.tokenizers.quotas import (
    BYTES,
    Share,
    as_strings,
    domain_texts,
    refuse_empty,
    reserved_tokens,
    share_out,
    take_turns,
    told,
)
from tokpack_core.tokenizers.sentencepiece.exact_scores import on_grid
from tokpack_core.tokenizers.sentencepiece.model import SentencePieceTokenizer
from tokpack_core.tokenizers.sentencepiece.proto import CONTROL, NORMAL, pieces, with_new_pieces
from tokpack_core.tokenizers.sentencepiece.training import (
    VocabularyTooLarge,
    VocabularyTooSmall,
    train_sentencepiece,
)
from tokpack_core.tokenizers.sentencepiece.unigram_em import fit
from tokpack_core.tokenizers.sentencepiece.words import SeenText, count_words

MOST_ROUNDS = 8
MORE = 1.2
LEAST_MORE = 16
"""Of what is missing after a round, so many times as many are asked for in the next, and some."""
SUMMED = ("bytes_dropped", "reserved_characters")
NEVER = 2**62


class Union:
    """Pieces of Unigram: any goes beside any."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._known: set[str] = set()

    def __contains__(self, piece: str) -> bool:
        return piece in self._known

    def add(self, piece: str, _: int = 0) -> bool:
        self._known.add(piece)
        self.pieces.append(piece)
        return True


class GrownPieces(Union):
    """Pieces of BPE, in the order in which they merge; characters are there without a merge."""

    def __init__(self) -> None:
        super().__init__()
        self._ranks: dict[str, int] = {}

    def add(self, piece: str, _: int = 0) -> bool:
        if len(piece) > 1:
            if len(self.parts(piece)) > 2:
                return False
            self._ranks[piece] = len(self._ranks)
        return super().add(piece)

    def parts(self, piece: str) -> list[str]:
        """What the library makes of its characters: the neighbours that make the earliest piece first."""
        parts = list(piece)
        while len(parts) > 1:
            ranks = [self._ranks.get(left + right, NEVER) for left, right in pairwise(parts)]
            lowest = min(ranks)
            if lowest == NEVER:
                break
            at = ranks.index(lowest)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return parts


class Domains:
    """Trainings of the domains, each on its own text."""

    def __init__(self, config: TrainConfig, texts: Mapping[str, TextSpool], unicode: UnicodeForm) -> None:
        self._config = config.model_copy(update={"allocation": None})
        self._texts = texts
        self._unicode = unicode
        self.fixed = BYTES + len({**config.special_tokens.by_role(), "unk": ""})
        self._quotas = config.quotas()
        self.own = {name: self._quotas[name] - part for name, part in share_out(BYTES, self._quotas).items()}
        """Pieces that each is to give: its quota without its part of the bytes."""
        self.exhausted: set[str] = set()
        """Domains whose text gives no more pieces."""

    def train(self, name: str, wanted: int) -> SentencePieceTokenizer:
        """With so many pieces beside the fixed ones, or as many as its text gives."""
        try:
            trained = self._trained(name, self.fixed + wanted)
        except VocabularyTooLarge as error:
            self.exhausted.add(name)
            trained = self._trained(name, error.possible)
        except VocabularyTooSmall as error:
            raise self._too_few(name, error.needed - self.fixed) from None
        characters = sum(len(piece) == 1 for piece, _ in entries_of(trained))
        if characters > self.own[name]:
            raise self._too_few(name, characters)
        return trained

    def _too_few(self, name: str, characters: int) -> InputError:
        # A larger quota has a larger part of the bytes, too.
        needed = next(
            quota
            for quota in count(self._quotas[name])
            if quota - share_out(BYTES, self._quotas | {name: quota})[name] >= characters
        )
        return InputError(
            f"`allocation` has {self._quotas[name]} entries for {name!r}, which is less than its characters need: "
            f"raise it to {needed} or more, or lower `character_coverage`"
        )

    def _trained(self, name: str, size: int) -> SentencePieceTokenizer:
        config = self._config.model_copy(update={"vocab_size": size})
        return train_sentencepiece(config, as_strings(self._texts[name]), self._unicode)


def train_allocated(
    config: TrainConfig, texts: Iterator[tuple[str, pa.Array]], unicode: UnicodeForm
) -> SentencePieceTokenizer:
    """Train on string arrays with their domains, which are read once.

    Raises InputError for a domain without text, and as `train_sentencepiece` does.
    """
    shares = {name: Share(quota) for name, quota in sorted(config.quotas().items())}
    with domain_texts(shares, texts) as (kept, labels):
        for name, spool in kept.items():
            refuse_empty(name, sum(pc.sum(pc.binary_length(array)).as_py() or 0 for array in spool.again()))
        domains = Domains(config, kept, unicode)
        if config.family == "sentencepiece_bpe":
            trained, shares, found, figures = shared_out_bpe(domains, shares)
        else:
            trained, shares, found, figures = shared_out_unigram(domains, shares)
            words = count_words(chain.from_iterable(map(as_strings, kept.values())), SeenText()).counted
            fitted = fit([piece.replace(META_SPACE, " ") for piece, _ in found], words)
            scores = on_grid(fitted.log_p)
            order = np.lexsort((np.arange(len(found)), -scores)).tolist()
            found = [(found[place][0], float(scores[place])) for place in order]
    first = next(iter(trained.values()))
    for name, tokenizer in trained.items():
        shares[name].documents, shares[name].bytes = (tokenizer.training[key] for key in ("documents", "bytes"))
        shares[name].share = round(shares[name].entries / (len(found) + BYTES), 6)
    fixed = [entry for entry in pieces(first.model) if entry[2] != NORMAL[0]]
    reserved = [(text, 0.0, CONTROL[0]) for text in reserved_tokens(config, len(fixed) - BYTES)]
    model = with_new_pieces(first.model, [*fixed, *((*entry, NORMAL[0]) for entry in found), *reserved])
    missing = sum(share.quota - share.entries for share in shares.values())
    training: dict[str, Any] = {key: sum(getattr(s, key) for s in shares.values()) for key in ("documents", "bytes")}
    training |= {key: sum(tokenizer.training[key] for tokenizer in trained.values()) for key in SUMMED}
    training |= figures | ({"entries_missing": missing} if missing else {}) | told(config, shares, labels)
    settings = dict(first.metadata.settings) | {"vocab_size": config.vocab_size}
    special = dict(first.metadata.special_tokens)
    return SentencePieceTokenizer(
        model, Metadata(config.family, unicode, special, settings, training), "the trained tokenizer"
    )


Trained = dict[str, SentencePieceTokenizer]
SharedOut = tuple[Trained, dict[str, Share], list[tuple[str, float]], dict[str, int]]
"""The tokenizer of each domain, what each got, pieces with scores, and figures."""


def shared_out_bpe(domains: Domains, shares: dict[str, Share]) -> SharedOut:
    most = sum(share.quota for share in shares.values())
    trained = {name: domains.train(name, most - BYTES) for name in shares}
    vocabulary = GrownPieces()
    given = take_turns(shares, {name: entries_of(tokenizer) for name, tokenizer in trained.items()}, vocabulary)
    note_shared(shares, trained, vocabulary, given)
    merged = [piece for piece in vocabulary.pieces if len(piece) > 1]
    single = [piece for piece in vocabulary.pieces if len(piece) == 1]
    return trained, shares, [(piece, float(-place)) for place, piece in enumerate([*merged, *single])], {}


def shared_out_unigram(domains: Domains, shares: dict[str, Share]) -> SharedOut:
    quotas = {name: share.quota for name, share in shares.items()}
    wanted = dict(domains.own)
    trained = {name: domains.train(name, wanted[name]) for name in shares}
    alone = dict(trained)
    rounds = 1
    while True:
        shares, vocabulary = {name: Share(quota) for name, quota in quotas.items()}, Union()
        given = take_turns(shares, {name: entries_of(tokenizer) for name, tokenizer in trained.items()}, vocabulary)
        missing = {name: share.quota - share.entries for name, share in shares.items()}
        again = [name for name, lacking in missing.items() if lacking and name not in domains.exhausted]
        if not again or rounds == MOST_ROUNDS:
            note_shared(shares, alone, vocabulary, given)
            return trained, shares, [(piece, 0.0) for piece in sorted(vocabulary.pieces)], {"rounds": rounds}
        for name in again:
            wanted[name] += int(MORE * missing[name]) + LEAST_MORE
            trained[name] = domains.train(name, wanted[name])
        rounds += 1


def note_shared(shares: dict[str, Share], trained: Trained, vocabulary: Union, given: dict[str, set[str]]) -> None:
    """What each would have alone and others gave."""
    of_bytes = share_out(BYTES, {name: share.quota for name, share in shares.items()})
    for name, share in shares.items():
        alone = islice(entries_of(trained[name]), share.quota - of_bytes[name])
        share.shared = sum(piece in vocabulary and piece not in given[name] for piece, _ in alone)


def entries_of(tokenizer: SentencePieceTokenizer) -> Iterator[tuple[str, int]]:
    """Its characters, then its other pieces in their order."""
    ordinary = [text for text, _, kind in pieces(tokenizer.model) if kind == NORMAL[0]]
    return ((piece, 0) for piece in sorted(ordinary, key=lambda piece: len(piece) > 1))
