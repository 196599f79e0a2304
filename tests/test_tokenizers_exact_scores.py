"""Unigram's ids do not depend on who adds up the scores."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import sentencepiece
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tokenizer_samples import EOD, HOSTILE, PAD, documents, ids, ordinary_text, trained
from tokpack_core.tokenizers.agreement.checked_export import save_checked
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.sentencepiece.exact_scores import LONGEST_EXACT, largest_exact_sum, on_grid
from tokpack_core.tokenizers.sentencepiece.export import as_tokenizer_json
from tokpack_core.tokenizers.sentencepiece.model import SentencePieceTokenizer
from tokpack_core.tokenizers.sentencepiece.proto import NORMAL, pieces, with_scores


@cache
def unigram() -> SentencePieceTokenizer:
    tokenizer = trained("sentencepiece_unigram")
    assert isinstance(tokenizer, SentencePieceTokenizer)
    return tokenizer


@cache
def translated() -> tokenizers.Tokenizer:
    return as_tokenizer_json(unigram().model, [EOD, PAD, "<unk>"], "none")


def best(text: str) -> list[str]:
    """The segmentation of the greatest exact sum; of equal ones that whose last piece is longest, and so on before it.

    A character without a piece stands for itself, with the least score less 10.
    """
    known = {piece: Fraction(score) for piece, score, kind in pieces(unigram().model) if kind == NORMAL[0]}
    unknown = min(known.values()) - 10
    written = text.replace(" ", "▁")
    sums, starts = [Fraction(0)], [0]
    for end in range(1, len(written) + 1):
        ways = [
            (sums[start] + known[written[start:end]], -start)
            for start in range(max(end - 16, 0), end)
            if written[start:end] in known
        ]
        if written[end - 1] not in known:
            ways.append((sums[end - 1] + unknown, 1 - end))
        total, start = max(ways)
        sums.append(total)
        starts.append(-start)
    found, end = [], len(written)
    while end:
        found.append(written[starts[end] : end])
        end = starts[end]
    return found[::-1]


def test_scores_are_multiples_of_an_eighth() -> None:
    assert on_grid(np.array([-3.19, -3.07, -3.0625, -2.9375])).tolist() == [-3.25, -3.125, -3.0, -3.0]
    scores = [score for _, score, kind in pieces(unigram().model) if kind == NORMAL[0]]
    assert all(score * 8 == round(score * 8) for score in scores)
    assert scores == sorted(scores, reverse=True)


def test_the_largest_exact_sum_is_that_of_the_finest_score() -> None:
    assert largest_exact_sum(np.array([-1.0, 0.0, -7.0], np.float32)) == 2**24
    assert largest_exact_sum(np.array([-1.0, -7.375], np.float32)) == 2**21
    assert largest_exact_sum(np.array([-0.1], np.float32)) <= 1
    total = np.float32(-(2**21))
    assert total + np.float32(-0.125) == total
    assert np.float32(total + np.float32(0.125)) - np.float32(0.125) == total


def test_all_give_the_segmentation_of_exact_sums() -> None:
    library = sentencepiece.SentencePieceProcessor(model_proto=unigram().model)

    @settings(max_examples=100, deadline=None)
    @given(st.one_of(ordinary_text(), st.text("aeinst ", max_size=40)), st.integers(0, len(documents()) - 1))
    def same(text: str, number: int) -> None:
        text = (text + documents()[number][:300]).replace("▁", "").replace(EOD, "").replace("\0", "")
        expected = [
            token
            for piece in best(text)
            for token in (
                [library.piece_to_id(piece)]
                if library.piece_to_id(piece) != library.unk_id()
                else [library.piece_to_id(f"<0x{byte:02X}>") for byte in piece.encode()]
            )
        ]
        assert ids(unigram(), text) == expected
        assert library.encode(text) == expected
        assert translated().encode(text, add_special_tokens=False).ids == expected

    same()


def test_a_long_document_has_the_ids_of_hugging_face_whatever_its_length() -> None:
    """Three times as long as sums are exact in 32 bits, and with unknown characters."""
    long = "\n".join(text + " 龘" for text in documents()) * 4
    text = long * (3 * 2**21 // (2 * len(long)) + 1)
    encoded = unigram().encode(pa.array([text]))
    assert not unigram().sums_exactly(encoded).any()
    assert len(text) > 4 * LONGEST_EXACT
    assert encoded.ids.tolist() == translated().encode(text, add_special_tokens=False).ids


def test_of_other_scores_no_document_is_cut() -> None:
    uneven = with_scores(unigram().model, lambda scores: scores + np.linspace(0, 1e-3, scores.size))
    other = SentencePieceTokenizer(uneven, unigram().metadata, "altered")
    text = "\n".join(documents())
    assert len(text) > LONGEST_EXACT
    assert ids(other, text) == sentencepiece.SentencePieceProcessor(model_proto=uneven).encode(text)
    assert not other.sums_exactly(other.encode(pa.array([text]))).any()


def test_rounded_sums_are_counted(tmp_path: Path) -> None:
    texts = [*documents()[:20], "龘" * 60_000, *HOSTILE]
    figures = save_checked(unigram(), tmp_path, pa.array(texts, pa.large_string()))
    assert figures["rounded_sums"] == 1
    assert figures["transformers"]["written"]


def test_exactness_is_judged_document_by_document() -> None:
    least = min(score for _, score, _ in pieces(unigram().model))
    a_byte = next(token for token, (_, _, kind) in enumerate(pieces(unigram().model)) if kind == 6)
    most = int(2**21 / (10 - least))
    encoded = Encoded(np.full(2 * most + 1, a_byte, np.int32), np.array([0, most, 2 * most + 1, 2 * most + 1]))
    assert unigram().sums_exactly(encoded).tolist() == [True, False, True]
