"""Vocabularies with quotas by domain: who gives which entry, exact totals, equality with other libraries, refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tiktoken
from tokenizers import Tokenizer as Engine

from tests.command_line import tokpack
from tests.small_project import write_small_project
from tests.tokenizer_samples import EOD, HOSTILE, PAD, SPECIAL_TOKENS, documents, saved_files
from tokpack_assets.metadata import tokenizer_metadata
from tokpack_core.bpe.merge_settings import BYTE_LEVEL_ORDER, Merges
from tokpack_core.config import TrainConfig
from tokpack_core.errors import ConfigError, InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.byte_bpe.allocation import interleaved
from tokpack_core.tokenizers.byte_bpe.derived_merges import with_required
from tokpack_core.tokenizers.common_hanzi import level_one_hanzi
from tokpack_core.tokenizers.domains import by_domain
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.quotas import Share, share_out

BYTES = [bytes([byte]) for byte in BYTE_LEVEL_ORDER]
HANZI = "".join(level_one_hanzi())
CHINESE = [HANZI[place : place + 12] + "。" for place in range(0, 400, 5)]
QUOTAS = {"en": 500, "code": 300, "zh": 200, "reserved": 20}


def learned(*merges: str) -> Merges:
    """Merges as `left+right`, counted down to 1."""
    pairs = [merge.encode().split(b"+") for merge in merges]
    tokens = [*BYTES, *(left + right for left, right in pairs)]
    left, right = ([tokens.index(part) for part in side] for side in zip(*pairs, strict=True))
    count = np.arange(len(merges), 0, -1)
    return Merges(tokens, np.array(left, np.int32), np.array(right, np.int32), count)


def parts(merges: Merges) -> list[str]:
    pairs = zip(merges.left.tolist(), merges.right.tolist(), strict=True)
    return [f"{merges.tokens[left].decode()}+{merges.tokens[right].decode()}" for left, right in pairs]


def allocated(settings: dict[str, object] | None = None, reverse: bool = False) -> Tokenizer:
    texts = {"en": documents()[:60], "zh": CHINESE, "code": [Path(json.__file__).read_text(encoding="utf-8")] * 2}
    config = TrainConfig.model_validate(
        {"family": "byte_bpe", "allocation": QUOTAS, "special_tokens": SPECIAL_TOKENS} | (settings or {})
    )
    mixed = [(name, pa.array([text], pa.string())) for name in texts for text in texts[name]]
    return registry.train_allocated(config, iter(mixed[::-1] if reverse else mixed), "none")


def test_bytes_are_shared_out_by_largest_remainders() -> None:
    assert share_out(256, {"a": 500, "b": 300, "c": 200}) == {"a": 128, "b": 77, "c": 51}
    assert share_out(10, {"a": 1, "b": 1, "c": 1}) == {"a": 4, "b": 3, "c": 3}


def test_the_domain_that_is_furthest_behind_is_next() -> None:
    """Of the bytes x has 171 of 175 and y 85 of 87. 172/175 < 86/87 < 173/175; then x first, at 175/175 too."""
    shares = {"x": Share(quota=175), "y": Share(quota=87)}
    trained = {"x": learned("a+b", "c+d", "e+f", "g+h"), "y": learned("a+b", "y+z", "x+y", "p+q")}
    assert parts(interleaved(trained, shares)) == ["a+b", "y+z", "c+d", "e+f", "g+h", "x+y"]
    assert {name: (share.entries, share.passed_over) for name, share in shares.items()} == {
        "x": (175, 0),
        "y": (87, 0),
    }
    assert [share.share for share in shares.values()] == [round(175 / 262, 6), round(87 / 262, 6)]


def test_an_entry_is_what_the_entries_before_it_make_of_it() -> None:
    """After x's b+c the bytes of y's `abc` are a and bc, and those of its `abcd` three tokens: no text gives it."""
    shares = {"x": Share(quota=400), "y": Share(quota=400)}
    merged = interleaved({"x": learned("b+c"), "y": learned("a+b", "c+d", "ab+cd", "ab+c", "abc+e")}, shares)
    assert parts(merged) == ["b+c", "a+b", "c+d", "a+bc", "abc+e"]
    assert shares["y"].passed_over == 1
    assert shares["y"].entries == 128 + 4


def test_what_a_domain_would_have_alone_and_others_gave_is_shared() -> None:
    """y gives a+b, then x gives b+c: each would have had both."""
    shares = {"x": Share(quota=300), "y": Share(quota=258)}
    interleaved({"x": learned("a+b", "b+c"), "y": learned("a+b", "b+c", "x+y")}, shares)
    assert (shares["x"].shared, shares["y"].shared) == (1, 1)


def test_every_entry_is_reached_and_the_total_is_exact(tmp_path: Path) -> None:
    tokenizer = allocated()
    saved_files(tokenizer, tmp_path / "model")
    engine = Engine.from_file(str(tmp_path / "model" / "tokenizer.json"))
    assert tokenizer.vocab_size == engine.get_vocab_size() == 1020
    assert [engine.token_to_id(token) for token in (EOD, PAD)] == [0, 1]
    assert [engine.id_to_token(token) for token in range(1002, 1020)] == [f"<|reserved_{n}|>" for n in range(18)]
    merges = json.loads((tmp_path / "model" / "tokenizer.json").read_bytes())["model"]["merges"]
    assert len(merges) == 1000 - 256
    model = engine.model
    assert [[token.id for token in model.tokenize(engine.id_to_token(entry))] for entry in range(2, 1002)] == [
        [entry] for entry in range(2, 1002)
    ]
    got = tokenizer.training["allocation"]
    assert {name: got[name]["entries"] for name in ("code", "en", "zh")} == {"code": 300, "en": 500, "zh": 200}
    assert (got["zh"]["share"], got["zh"]["documents"], got["reserved"]) == (0.2, 80, 20)
    assert all(got[name]["shared"] > 0 for name in ("code", "en"))


def test_ids_are_those_of_tokenizers_and_of_tiktoken(tmp_path: Path) -> None:
    tokenizer = allocated()
    saved_files(tokenizer, tmp_path / "model")
    engine = Engine.from_file(str(tmp_path / "model" / "tokenizer.json"))
    engine.encode_special_tokens = True
    texts = [*documents()[:80], *CHINESE[:2], *HOSTILE, "<|reserved_3|> is text"]
    ours = tokenizer.encode(pa.array(texts, pa.string()))
    lists = [ours.ids[first:stop].tolist() for first, stop in zip(ours.offsets, ours.offsets[1:], strict=False)]
    assert lists == [encoding.ids for encoding in engine.encode_batch(texts, add_special_tokens=False)]
    table = tokenizer.vocabulary().filter(pa.array([2 <= number < 1002 for number in range(1020)]))
    ranks = dict(zip(table["token"].to_pylist(), table["id"].to_pylist(), strict=True))
    pattern = json.loads((tmp_path / "model" / "tokenizer.json").read_bytes())["pre_tokenizer"]["pretokenizers"][0]
    peer = tiktoken.Encoding("x", pat_str=pattern["pattern"]["Regex"], mergeable_ranks=ranks, special_tokens={})
    assert lists == peer.encode_ordinary_batch(texts)


def test_neither_the_order_of_documents_nor_of_domains_matters(tmp_path: Path) -> None:
    turned = {"allocation": dict(reversed(QUOTAS.items()))}
    one, other = saved_files(allocated(), tmp_path / "a"), saved_files(allocated(turned, reverse=True), tmp_path / "b")
    assert one["tokenizer.json"] == other["tokenizer.json"]
    assert one["merges.parquet"] == other["merges.parquet"]


def test_a_document_is_of_its_corpus_and_else_of_its_language() -> None:
    texts, languages = pa.array(["a", "b", "c"]), pa.array(["en", None, "zh"])

    def found(sources: tuple[str, ...]) -> list[tuple[str, list[str]]]:
        return [(label, part.to_pylist()) for label, part in by_domain(texts, languages, sources, ("web", "zh"))]

    assert found(("web",)) == [("web", ["a", "b", "c"])]
    assert found(("books",)) == [("en", ["a"]), ("books", ["b"]), ("zh", ["c"])]


def test_a_domain_that_its_text_cannot_fill_is_told() -> None:
    tokenizer = allocated({"allocation": {"en": 500, "zh": 9000, "code": 300, "reserved": 2}})
    missing = tokenizer.training["entries_missing"]
    assert tokenizer.vocab_size == 9802 - missing
    assert tokenizer.training["allocation"]["zh"]["entries"] == 9000 - missing
    assert tokenizer.training["allocation"]["en"]["entries"] == 500


def texts_of(label: str) -> Iterator[tuple[str, pa.Array]]:
    yield label, pa.array(["some text of a language"] * 9, pa.string())


def test_a_domain_without_text_is_refused() -> None:
    config = TrainConfig(family="byte_bpe", allocation={"english": 400, "fr": 400})
    texts = [*texts_of("fr"), *texts_of("de")]
    with pytest.raises(InputError, match="for 'english', and no document is of it: the training text has de, fr;"):
        registry.train_allocated(config, iter(texts), "none")
    with pytest.raises(InputError, match="all documents of the domain 'fr' of `allocation` are empty"):
        registry.train_allocated(config, iter([*texts_of("english"), ("fr", pa.array([""]))]), "none")


def test_texts_without_domains_are_refused() -> None:
    config = TrainConfig(family="byte_bpe", allocation={"en": 400})
    with pytest.raises(InputError, match="trained on texts whose domain is named"):
        registry.train(config, iter([pa.array(["text"])]), "none")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocab_size": 999}, "`allocation` sums up to 1020, and `vocab_size` is 999"),
        ({"allocation": {"en": 400, "reserved": 1}}, "needs `reserved: 2` or more"),
        ({"allocation": {"en": 200, "reserved": 9}}, "at least 256 entries"),
        ({"alphabet": "seen_bytes"}, "goes neither with"),
        ({"family": "wordpiece"}, "`allocation` has no effect on wordpiece"),
        ({"special_tokens": {"eod": "<|reserved_7|>"}}, "are those of `allocation`"),
    ],
)
def test_what_does_not_go_together_is_refused(settings: dict[str, object], message: str) -> None:
    given = {"family": "byte_bpe", "allocation": QUOTAS, "special_tokens": {"eod": EOD, "pad": PAD}}
    with pytest.raises(ValueError, match=message):
        TrainConfig.model_validate(given | settings)


def test_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "en.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in documents()[:40]))
    lines = [json.dumps({"text": text, "lang": "zh"}) + "\n" for text in CHINESE]
    (tmp_path / "more.jsonl").write_text("".join(lines) + json.dumps({"text": "ein Satz", "lang": "de"}) + "\n")
    quotas = [part for name, entries in (("en", 400), ("zh", 300), ("reserved", 10)) for part in (name, entries)]
    flags = [f"--allocation={name}={entries}" for name, entries in zip(quotas[::2], quotas[1::2], strict=True)]
    train = ["train", "--family", "byte_bpe", "--lang-field", "lang", "--special-token", f"eod={EOD}", *flags]
    shown = tokpack(tmp_path, *train, "--output", "model", "en.jsonl", "more.jsonl").out
    assert "300 of 300 entries, 42.9% of all" in shown
    assert "documents of no domain" in shown
    manifest = json.loads((tmp_path / "model.manifest.json").read_bytes())
    assert manifest["counts"]["vocab_size"] == 710
    assert manifest["counts"]["allocation"]["zh"]["documents"] == 80
    wrong = tokpack(tmp_path, *train, "--allocation", "fr", "--output", "other", "en.jsonl", may_fail=True)
    assert "write DOMAIN=ENTRIES" in wrong.err


def test_in_the_graph(tmp_path: Path) -> None:
    project = write_small_project(tmp_path)
    project.edit("vocab_size: 600", "allocation: {en: 380, code: 210, reserved: 10}")
    built = project.build("tokenizer_model/bpe_600")["tokenizer_model/bpe_600"]
    assert built.counts["vocab_size"] == 600
    got = built.counts["training"]["allocation"]
    assert (got["en"]["entries"], got["code"]["entries"], got["reserved"]) == (380, 210, 10)
    assert built.counts["training"]["documents_of_no_domain"] == 1
    assert tokenizer_metadata(built)["allocation"] == "code 210 of 210 (35.6%), en 380 of 380 (64.4%)"


def test_a_domain_that_no_corpus_can_hold_is_found_before_anything_runs(tmp_path: Path) -> None:
    project = write_small_project(tmp_path)
    project.edit("    lang_field: lang\n", "    lang: en\n")
    project.edit("vocab_size: 600", "allocation: {en: 380, cod: 210, reserved: 10}")
    with pytest.raises(ConfigError, match=r"allocation: there is no corpus in train_on or language of one `cod`.*code"):
        project.load()


def test_required_characters_take_the_place_of_the_last_merges() -> None:
    texts = [*documents(), *CHINESE]
    plain = TrainConfig(family="byte_bpe", vocab_size=5000, special_tokens=SPECIAL_TOKENS)
    required = plain.model_copy(update={"required_characters": "gb2312_level_1"})
    one, other = (registry.train(config, iter([pa.array(texts)]), "none") for config in (plain, required))
    tokens, others = (tokenizer.vocabulary()["token"].to_pylist() for tokenizer in (one, other))
    added = other.training["entries_for_required_characters"]
    assert len(others) == 5000
    assert others[: 5000 - added] == tokens[: 5000 - added]
    assert {character.encode() for character in level_one_hanzi()} <= set(others)
    encoded = other.encode(pa.array(level_one_hanzi()))
    assert np.all(encoded.lengths == 1)


def test_characters_that_need_more_entries_than_there_are_are_refused() -> None:
    with pytest.raises(InputError, match="bytes and required characters need 4307 entries"):
        with_required(learned("a+b"), 4000, level_one_hanzi())
