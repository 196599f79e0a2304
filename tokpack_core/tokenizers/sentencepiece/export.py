"""A SentencePiece model as a tokenizer.json, for transformers and tokenizers.

Unigram keeps its scores; BPE gets a merge for every way to make a piece of two, in the order of scores. Text is
brought to the unicode form, then spaces become U+2581, and what has no piece falls back to bytes.

SentencePiece never matches control and byte pieces in text, while the other library's Unigram matches any entry: they
get a score that no segmentation chooses, and unused pieces a space in front, which no text has left here. The library
reads a literal U+2581 as a space, which our encoder does not.
"""

from __future__ import annotations

import sentencepiece
from tokenizers import Tokenizer as Engine
from tokenizers import decoders, models, normalizers

from tokpack_core.config import UnicodeForm
from tokpack_core.tokenizers.byteification.token_bytes import META_SPACE
from tokpack_core.tokenizers.huggingface.tokenizer_json import as_special, normalizer_of
from tokpack_core.tokenizers.sentencepiece.proto import merges_pairs

NEVER = -1e4
"""Far below the score of any text that spells such a piece in other pieces."""


def as_tokenizer_json(model: bytes, special_tokens: list[str], unicode: UnicodeForm) -> Engine:
    """`model`: one that we trained."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    ids = list(range(processor.vocab_size()))
    pieces: list[str] = processor.id_to_piece(ids)
    scores: list[float] = processor.get_score(ids)
    hidden = [processor.is_control(token) or processor.is_unknown(token) or processor.is_byte(token) for token in ids]
    unk = processor.unk_id()
    if not merges_pairs(model):
        unused: list[bool] = [processor.is_unused(token) for token in ids]
        shown = [f" {piece}" if apart else piece for piece, apart in zip(pieces, unused, strict=True)]
        never = [h or apart for h, apart in zip(hidden, unused, strict=True)]
        entries = [(piece, NEVER if n else score) for piece, score, n in zip(shown, scores, never, strict=True)]
        engine = Engine(models.Unigram(entries, unk_id=unk, byte_fallback=True))
    else:
        ordinary = {piece for piece, h in zip(pieces, hidden, strict=True) if not h}
        merges = [pair for piece in by_score(pieces, scores) if piece in ordinary for pair in halves(piece, ordinary)]
        vocabulary = {piece: token for token, piece in enumerate(pieces)}
        engine = Engine(models.BPE(vocabulary, merges, unk_token=pieces[unk], byte_fallback=True))
    form = normalizer_of(unicode)
    spaces = normalizers.Replace(" ", META_SPACE)
    engine.normalizer = spaces if form is None else normalizers.Sequence([form, spaces])
    engine.decoder = decoders.Sequence([decoders.Replace(META_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
    engine.add_special_tokens(as_special(special_tokens))
    return engine


def by_score(pieces: list[str], scores: list[float]) -> list[str]:
    return [pieces[token] for token in sorted(range(len(pieces)), key=lambda token: -scores[token])]


def halves(piece: str, known: set[str]) -> list[tuple[str, str]]:
    pairs = ((piece[:place], piece[place:]) for place in range(1, len(piece)))
    return [(left, right) for left, right in pairs if left in known and right in known]
