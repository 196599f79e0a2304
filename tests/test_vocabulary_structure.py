"""The audit of entries: reachability, residues, reasons, cost of removal, duplicates, scripts; derived by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.comparison.efficiency import residue_share
from tokpack_core.config import SpecialTokens, TrainConfig
from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.tokenizers.protocol import VOCABULARY_SCHEMA, Tokenizer
from tokpack_core.tokenizers.registry import load, train
from tokpack_core.tokenizers.residues.litetoken_training import without_residues_of
from tokpack_core.tokenizers.residues.residues import ResidueLimits
from tokpack_core.tokenizers.tiktoken.ranks import write_rank_file
from tokpack_core.vocabulary.counting import text_counter
from tokpack_core.vocabulary.counts import LANGUAGE_SCHEMA, TokenCounts
from tokpack_core.vocabulary.merge_counts import MergeCounts
from tokpack_core.vocabulary.rare_tokens import REASONS, rare_rows, rarest_first, reasons, removal_cost
from tokpack_core.vocabulary.reachability import reachability
from tokpack_core.vocabulary.report import build_report
from tokpack_core.vocabulary.scripts import SCRIPTS, scripts_of
from tokpack_core.vocabulary.spelling_kernel import are_utf8
from tokpack_core.vocabulary.structure import audit, digit_policy, pieces_of, structure
from tokpack_core.vocabulary.token_features import TokenFeatures, token_features


def features_of(tokens: list[bytes], special: tuple[int, ...] = (), fallback: tuple[int, ...] = ()) -> TokenFeatures:
    size = len(tokens)
    columns = [range(size), tokens, [i in special for i in range(size)], [i in fallback for i in range(size)]]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, VOCABULARY_SCHEMA, strict=True)]
    return token_features(pa.table(arrays, VOCABULARY_SCHEMA))


def counts_of(frequencies: list[int], consumed: list[int] | None = None) -> TokenCounts:
    nothing = np.zeros((0, len(frequencies)), np.int64)
    merges = MergeCounts(np.array(consumed), nothing[:, 0], nothing) if consumed else None
    return TokenCounts(np.array(frequencies), LANGUAGE_SCHEMA.empty_table(), merges=merges)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=6) | st.text(max_size=3).map(lambda t: t.encode("utf-8", "surrogatepass"))))
def test_utf8_is_what_python_decodes(tokens: list[bytes]) -> None:
    def decodes(token: bytes) -> bool:
        try:
            token.decode()
        except UnicodeDecodeError:
            return False
        return True

    assert are_utf8(*text_buffers(pa.array(tokens, pa.binary()))).tolist() == [decodes(token) for token in tokens]


def test_scripts_are_those_of_the_letters() -> None:
    tokens = ["the", " Ω1", "да", "中文", "ひら", "カナひ", "aб", "12.", "", "ก", "e\u0301", "𐎀"]
    numbers = scripts_of("".join(tokens), np.array([len(token) for token in tokens]))
    expected = ["Latin", "Greek", "Cyrillic", "Han", "Hiragana", "mixed", "mixed", "common", "common", "Thai", "Latin"]
    assert [SCRIPTS[n] for n in numbers] == [*expected, "other"]


def test_every_named_script_is_one_of_unicode() -> None:
    for name in SCRIPTS[:-4]:
        assert regex.compile(rf"\p{{Script={name}}}")


def test_features_by_hand() -> None:
    tokens = [b"<eod>", b" the", b"  ", b"\n\n", b" 12", b"\xe4\xb8", b"<|reserved_7|>", b"a", " ٣".encode()]
    features = features_of(tokens, special=(0,))
    assert features.space.tolist() == [False, True, False, False, True, False, False, False, True]
    assert features.white.tolist() == [False, False, True, True, False, False, False, False, False]
    assert features.newline.nonzero()[0].tolist() == [3]
    assert features.digits.nonzero()[0].tolist() == [4, 8]
    assert features.reserved.nonzero()[0].tolist() == [0, 6]
    assert features.characters.tolist() == [5, 4, 2, 2, 3, 0, 14, 1, 2]
    assert features.entry.tolist() == [False] + [True] * 8
    assert features.text[5].as_py() is None


def trained(folder: Path) -> dict[str, object]:
    texts = pa.array(["the cat thinks the mat is the thing 1234567", "中文中文 thе"] * 9)
    config = TrainConfig(family="byte_bpe", vocab_size=300, special_tokens=SpecialTokens(eod="<|endoftext|>"))
    train(config, iter([texts]), "nfc").save(folder)
    content: dict[str, object] = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer_config.json").unlink()
    return content


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """A byte-level BPE to which entries were added that no merge makes, and one across pretokens."""
    folder = tmp_path_factory.mktemp("odd")
    content = trained(folder)
    model = content["model"]
    assert isinstance(model, dict)
    size = len(model["vocab"])
    # "zq" has no merge; "xĠy" (x, space, y) has, but the regex cuts before the space.
    model["vocab"] |= {"zq": size, "Ġy": size + 1, "xĠy": size + 2}
    model["merges"] += [["Ġ", "y"], ["x", "Ġy"]]
    (folder / "odd.json").write_text(json.dumps(content))
    return load(folder / "odd.json")


def test_unreachable_are_those_that_no_text_gives(odd: Tokenizer) -> None:
    features = token_features(odd.vocabulary())
    reach = reachability(odd, features, np.zeros(len(features.ids), bool))
    tokens = [features.tokens[row].as_py() for row in reach.unreachable.nonzero()[0]]
    assert tokens == [b"zq", b"x y"]
    seen = features.tokens.to_numpy(zero_copy_only=False) == b"zq"
    assert reachability(odd, features, seen).unreachable.sum() == 1


def test_parts_of_characters_are_tried_on_the_merges(tmp_path: Path) -> None:
    content = trained(tmp_path)
    model = content["model"]
    assert isinstance(model, dict)
    size = len(model["vocab"])
    # "ðŁ" begins an emoji and has a merge; "ÿþ" has none.
    model["vocab"] |= {"ðŁ": size, "ÿþ": size + 1}
    model["merges"] += [["ð", "Ł"]]
    (tmp_path / "parts.json").write_text(json.dumps(content))
    tokenizer = load(tmp_path / "parts.json")
    features = token_features(tokenizer.vocabulary())
    reach = reachability(tokenizer, features, np.zeros(len(features.ids), bool))
    assert [features.tokens[row].as_py() for row in reach.unreachable.nonzero()[0]] == [b"\xff\xfe"]
    assert not reach.undecided.any()


def test_structure_shows_what_comes_instead_of_an_unreachable_token(odd: Tokenizer) -> None:
    features = token_features(odd.vocabulary())
    zero = TokenCounts.zero(odd.vocab_size)
    found = structure(odd, audit(odd, features, zero, zero), zero)
    names = {token: row for row, token in enumerate(features.tokens.to_pylist())}
    assert found["unreachable"]["entries"] == 2
    assert found["unreachable"]["examples"] == [
        {"id": names[b"zq"], "gives": [names[b"z"], names[b"q"]]},
        {"id": names[b"x y"], "gives": [names[b"x"], names[b" y"]]},
    ]
    assert found["glitch_candidates"]["entries"] == 0  # nothing was counted


def test_a_model_that_puts_a_space_first_reaches_tokens_after_a_letter() -> None:
    texts = pa.array(["the thing thinks, nothing sings"] * 20)
    config = TrainConfig(family="sentencepiece_bpe", vocab_size=285, special_tokens=SpecialTokens(eod="<eod>"))
    tokenizer = train(config, iter([texts]), "nfc")
    features = token_features(tokenizer.vocabulary())
    reach = reachability(tokenizer, features, np.zeros(len(features.ids), bool))
    unreachable = [features.tokens[row].as_py() for row in reach.unreachable.nonzero()[0]]
    brute = [
        token
        for row, token in enumerate(features.tokens.to_pylist())
        if features.kind[row] == 0
        and not any(
            int(features.ids[row]) in tokenizer.encode(pa.array([before + token.decode()])).ids
            for before in ("", "a", " ", "«", "1", ".", "\n", "中", "a ")
        )
    ]
    assert unreachable == brute


def test_residues_of_a_report_are_those_that_litetoken_takes_out(tmp_path: Path) -> None:
    tokens = [bytes([byte]) for byte in range(256)] + [
        b"th",
        b"the",
        b"xy",
        b"xyz",
        b"an",
        b"and",
        b"ant",
        b"qu",
        b"qui",
    ]
    write_rank_file(tmp_path / "x.tiktoken", {token: rank for rank, token in enumerate(tokens)})
    tokenizer = load(tmp_path / "x.tiktoken", pretokenizer="gpt2")
    # th is consumed 100 times and left 4 times; xy 19 times, too few to tell; an 60 times and left 6 times, too often.
    words = ["the"] * 100 + ["th"] * 4 + ["xyz"] * 19 + ["and"] * 30 + ["ant"] * 30 + ["an"] * 6 + ["qui"] * 20
    texts = pa.array(words)
    counter = text_counter(tokenizer)
    counter.add(texts, pa.nulls(len(texts), pa.string()))
    counts = counter.total()
    found = structure(tokenizer, audit(tokenizer, token_features(tokenizer.vocabulary()), counts, counts), counts)
    assert found["residues"] == {
        "entries": 2,
        "share": 2 / 265,
        "met": 7,  # th, the, an, and, ant, qu, qui
        "share_of_met": 2 / 7,
        "limits": {"max_residue_ratio": 0.05, "max_neighbor_entropy": 2.0, "min_count": 20},
        "examples": [{"id": 256, "final": 4, "consumed": 100}, {"id": 263, "final": 0, "consumed": 20}],
    }
    removed = without_residues_of(tokenizer, ResidueLimits(), iter([texts])).report["removed"]
    assert [row["id"] for row in removed] == [256, 263]
    assert residue_share(tokenizer, counts) == 2 / 265


def test_each_entry_has_the_first_reason_that_fits() -> None:
    tokens = [b"<s>", b"<unused1>", b"\xe4", b"zq", b"th", "да".encode(), b"the", b"!!"]
    features = features_of(tokens, special=(0,))
    counts = counts_of([0, 0, 0, 0, 0, 1, 900, 0])
    unreachable, residue = (np.isin(np.arange(8), rows) for rows in ([1, 3], [3, 4]))
    why = [REASONS[reason] for reason in reasons(features, counts, unreachable, residue)]
    assert why[1:5] == ["reserved", "byte_fragment", "unreachable", "residue"]
    # Latin has 900 x 3 characters, Cyrillic 2; punctuation belongs to no script.
    assert why[5:] == ["absent_script", "seldom", "seldom"]


def test_removal_costs_the_tokens_that_stand_in() -> None:
    features = features_of([b"a", b"b", b"c", b"ab", b"abc", b"abcab"])
    counts = counts_of([9, 9, 9, 5, 3, 2])
    # Without abcab: abc ab, 1 more for each of 2. Without abc too: ab c twice over: abcab = ab c ab.
    assert removal_cost(features, counts, np.isin(np.arange(6), [5])) == 2
    assert removal_cost(features, counts, np.isin(np.arange(6), [4, 5])) == 3 * 1 + 2 * 2
    # Bytes stay, so abc = a b c.
    assert removal_cost(features, counts, np.ones(6, bool)) == 5 * 1 + 3 * 2 + 2 * 4
    assert removal_cost(features, counts, np.zeros(6, bool)) == 0


def test_rare_rows_by_hand() -> None:
    features = features_of([b"<s>", b"a", b"b", b"ab", b"aab"], special=(0,))
    counts = counts_of([7, 50, 40, 4, 1])
    rows = {row["below"]: row for row in rare_rows(features, counts, np.array([5, 1, 1, 5, 3]))}
    assert (rows[1]["entries"], rows[1]["share"], rows[1]["removal_tokens"]) == (0, 0.0, 0)
    assert (rows[2]["entries"], rows[2]["reasons"]["residue"], rows[2]["removal_tokens"]) == (1, 1, 1)
    assert rows[5]["reasons"] == dict.fromkeys(REASONS, 0) | {"residue": 1, "seldom": 1}
    # ab becomes a b (4 more), aab becomes a a b (2 more), of 102 tokens.
    assert (rows[5]["removal_tokens"], rows[5]["removal_share"]) == (6, 6 / 102)
    assert (rows[100]["entries"], rows[100]["share"]) == (4, 1.0)


def test_rarest_put_characters_before_bytes_and_late_ids_first() -> None:
    features = features_of([b"<s>", b"a", b"\xe4\xb8", b"the", b"cat"], special=(0,))
    assert rarest_first(features, counts_of([0, 0, 0, 0, 0]), 9).tolist() == [4, 3, 2, 1]
    assert rarest_first(features, counts_of([0, 3, 2, 1, 1]), 3).tolist() == [4, 3, 2]


def test_structure_by_hand() -> None:
    tokens = [b"<s>", b"the", b" the", b" The", b"THE", b"cat", b"    ", b"\t", b"\n\n", b" ", b"7", b" 42", b"365"]
    features = features_of(tokens, special=(0,))
    counts = counts_of([0, 9, 8, 1, 0, 5, 2, 1, 1, 1, 3, 2, 0])
    nothing = TokenCounts.zero(13)
    found = structure(None, audit(None, features, counts, nothing), counts)
    near = found["near_duplicates"]
    assert (near["groups"], near["entries"], near["examples"]) == (1, 4, [[1, 2, 3, 4]])
    # "the" and "THE", " the" and " The" differ in case; "the" and " the" in the space alone.
    assert (near["by_case"], near["by_space"]) == (4, 2)
    assert found["whitespace"] == {
        "entries": 4,
        "with_newline": 1,
        "tabs": 1,
        "space_runs": [1, 4],
        "leading_space": 3,
        "longest": [6, 8, 7, 9],
    }
    assert found["digits"]["by_digits"][:3] == [1, 1, 1]
    assert found["glitch_candidates"]["examples"] == [3, 4, 12, 8]
    assert found["scripts"] == [
        {"script": "common", "entries": 7, "seen": 6, "occurrences": 10},
        {"script": "Latin", "entries": 5, "seen": 4, "occurrences": 23},
    ]
    assert found["lengths"][2] == {"bytes": 3, "entries": 5, "occurrences": 16}
    assert found["longest"][:2] == [2, 3]
    assert found["residues"] is None


def test_digit_policies() -> None:
    assert digit_policy([list("1234567")]) == "single digits"
    assert digit_policy([["123", "456", "7"]]) == "groups of three from the left"
    assert digit_policy([[" 1", "234", "567"]]) == "groups of three from the right"
    assert digit_policy([["1234567"]]) == digit_policy([["12", "34567"]]) == "left to the merges"
    # Few merges cut the groups of the pretokenizer further.
    assert digit_policy([["1", "23", "45", "6", "7"], ["123", "4", "56", "7"]]) == "groups of three from the left"
    assert digit_policy([["123", "456", "7"], ["12", "345", "67"]]) == "left to the merges"


@pytest.mark.parametrize(
    ("pretokenizer", "policy"),
    [("cl100k", "groups of three from the left"), ("gpt2", "left to the merges"), ("qwen2", "single digits")],
)
def test_the_digit_policy_of_a_pretokenizer_is_found_in_a_small_vocabulary(pretokenizer: str, policy: str) -> None:
    config = TrainConfig(family="byte_bpe", vocab_size=300, pretokenizer=pretokenizer)
    numbers = [str(7919 * number % 10_000_000) for number in range(2_000)]
    tokenizer = train(config, iter([pa.array(numbers)]), "nfc")
    counts = text_counter(tokenizer)
    counts.add(pa.array(numbers), pa.nulls(len(numbers), pa.string()))
    report = build_report("t", {}, tokenizer.vocabulary(), counts.total(), counts.total(), tokenizer)
    assert report["structure"]["digits"]["policy"] == policy


def test_pieces_are_the_text_of_each_token(odd: Tokenizer) -> None:
    assert "".join(pieces_of(odd, "the 12 cat")) == "the 12 cat"
    assert pieces_of(odd, "é") == ["\ufffd", "\ufffd"]
