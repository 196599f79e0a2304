"""Comparison of tokenizers: each figure by hand, and the command on real tokenizers."""

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from tests.command_line import refused, tokpack
from tests.tokenizer_samples import train, trained
from tokpack_core.comparison.bootstrap import effect_size, holm, paired_difference
from tokpack_core.comparison.chinese_script import with_chinese_scripts
from tokpack_core.comparison.comparison import compare, verdict
from tokpack_core.comparison.controls import controls
from tokpack_core.comparison.efficiency import renyi_efficiency
from tokpack_core.comparison.findings import findings
from tokpack_core.comparison.held_out import Candidate, HeldOut, measure
from tokpack_core.comparison.morphemes import boundary_scores, read_gold_words
from tokpack_core.config import TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.byteification.token_bytes import BYTE_TO_CHARACTER
from tokpack_core.vocabulary.parallel_text import ParallelText


def test_equal_tokenizers_do_not_differ() -> None:
    tokens = np.arange(1, 101)
    found = paired_difference(tokens, tokens)
    assert (found.ratio, found.low, found.high, found.effect_size, found.p) == (1.0, 1.0, 1.0, 0.0, 1.0)


def test_a_tenth_less_everywhere_is_certain() -> None:
    others = np.arange(10, 1010, 10)
    found = paired_difference(others * 9 // 10, others)
    assert found.ratio == pytest.approx(0.9)
    assert found.low == pytest.approx(found.high)
    assert found.p is not None
    assert found.p < 1e-9


def test_interval_and_p_follow_the_spread() -> None:
    """Half of the documents are longer by half, half shorter by half: nothing that 100 documents could prove."""
    others = np.full(100, 100)
    tokens = np.where(np.arange(100) % 2, 150, 51)
    found = paired_difference(tokens, others)
    assert found.ratio == pytest.approx(1.005)
    # The mean of 100 draws of 0.51 or 1.50 has the standard error 0.495 / 10.
    assert found.low == pytest.approx(1.005 - 1.96 * 0.0495, abs=0.015)
    assert found.high == pytest.approx(1.005 + 1.96 * 0.0495, abs=0.015)
    assert found.p is not None
    assert found.p > 0.8
    assert verdict(found.ratio, found.p) == "not significant"


def test_few_documents_prove_nothing() -> None:
    found = paired_difference(np.full(19, 5), np.full(19, 10))
    assert (found.documents, found.ratio, found.p) == (19, 0.5, None)
    assert verdict(found.ratio, None) == "too few documents"


def test_documents_without_tokens_are_left_out() -> None:
    assert paired_difference(np.array([0, 2]), np.array([0, 4])).documents == 1
    assert math.isnan(paired_difference(np.zeros(3, np.int64), np.zeros(3, np.int64)).ratio)


def test_holm() -> None:
    # Sorted 0.01 x 3, 0.03 x 2, 0.04 x 1, never below the one before.
    assert holm([0.01, None, 0.04, 0.03]) == [pytest.approx(0.03), None, pytest.approx(0.06), pytest.approx(0.06)]
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_effect_size() -> None:
    # Logarithms ln 2 and 0: mean ln 2 / 2, spread ln 2 / sqrt 2.
    assert effect_size(np.array([2, 1]), np.array([1, 1])) == pytest.approx(math.sqrt(2) / 2)
    assert effect_size(np.array([2, 4]), np.array([1, 2])) == math.inf


def test_renyi_efficiency() -> None:
    assert renyi_efficiency(np.array([7, 7, 7, 7])) == pytest.approx(1.0)
    # Two entries of 3/4 and 1/4 among four: H = ln(sum p^2.5) / (1 - 2.5) over ln 4.
    by_hand = math.log(0.75**2.5 + 0.25**2.5) / -1.5 / math.log(4)
    assert renyi_efficiency(np.array([3, 1, 0, 0])) == pytest.approx(by_hand)
    assert renyi_efficiency(np.zeros(4, np.int64)) is None


def one_document(
    tokens: dict[str, int], unknown: dict[str, int], whole: dict[str, int], fewest: dict[str, int]
) -> HeldOut:
    """A document in English, and how many tokens it has by each tokenizer."""
    column = np.array([1], np.int64)
    columns = [
        {name: np.array([number]) for name, number in given.items()} for given in (tokens, unknown, whole, fewest)
    ]
    return HeldOut(pa.array(["en"]), column, column, column, *columns, counts={})


def test_what_is_due_to_the_vocabulary_and_what_to_the_encoder() -> None:
    held_out = one_document(
        tokens={"a": 80, "b": 100, "lossy": 50},
        unknown={"a": 0, "b": 0, "lossy": 7},
        whole={},
        fewest={"a": 60, "b": 90},
    )
    found = controls(held_out, ["b", "a", "lossy"], "b", {"a": 1000, "b": 1005, "lossy": 2000})
    by_encoder = {row["tokenizer"]: row["encoder_excess"] for row in found["same_vocabulary_two_encoders"]}
    assert by_encoder == {"a": pytest.approx(80 / 60 - 1), "b": pytest.approx(100 / 90 - 1), "lossy": None}
    first, second = found["two_vocabularies_one_encoder"]
    assert first["whole"] == pytest.approx(-0.2)
    assert first["by_vocabulary"] == pytest.approx(60 / 90 - 1)
    assert first["by_encoder"] == pytest.approx((80 / 60) / (100 / 90) - 1)
    assert (first["same_size"], second["same_size"]) == (True, False)
    assert (second["by_vocabulary"], second["by_encoder"]) == (None, None)


def test_what_is_due_to_sub_tokenizers() -> None:
    """`a` gives 80 tokens by sub-tokenizers and 72 by its whole vocabulary, of which the fewest are 60."""
    held_out = one_document(
        tokens={"a": 80, "b": 100}, unknown={"a": 0, "b": 0}, whole={"a": 72}, fewest={"a": 60, "b": 90}
    )
    found = controls(held_out, ["b", "a"], "b", {"a": 1000, "b": 1000})
    plain, modular = found["same_vocabulary_two_encoders"]
    assert (plain["whole_vocabulary"], plain["sub_tokenizer_excess"]) == (None, None)
    assert (modular["whole_vocabulary"], modular["sub_tokenizer_excess"]) == (72, pytest.approx(80 / 72 - 1))
    assert modular["encoder_excess"] == pytest.approx(80 / 60 - 1)
    (row,) = found["two_vocabularies_one_encoder"]
    assert row["by_vocabulary"] == pytest.approx(60 / 90 - 1)
    assert row["by_encoder"] == pytest.approx((72 / 60) / (100 / 90) - 1)
    assert row["by_sub_tokenizers"] == pytest.approx(80 / 72 - 1)
    parts = (row["by_vocabulary"], row["by_encoder"], row["by_sub_tokenizers"])
    assert math.prod(1 + part for part in parts) == pytest.approx(80 / 100)


def test_chinese_scripts() -> None:
    texts = pa.array(["中国的语言", "中國的語言", "中文", "国國国", "国", "", "國"])
    langs = pa.array(["zh", "zh", "zh", "zho-CN", "ja", "zh-Hant", None])
    found = with_chinese_scripts(langs, texts).to_pylist()
    assert found == ["zh-Hans", "zh-Hant", "zh", "zho-CN-Hans", "ja", "zh-Hant", None]


def byte_bpe_file(folder: Path, merges: list[tuple[str, str]]) -> Path:
    """A byte-level BPE with these merges, in the letters of the file."""
    entries = [*BYTE_TO_CHARACTER.values(), *("".join(pair) for pair in merges)]
    engine = Tokenizer(models.BPE({entry: token for token, entry in enumerate(entries)}, merges))
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    folder.mkdir()
    engine.save(str(folder / "tokenizer.json"))
    return folder


def test_morpheme_boundaries(tmp_path: Path) -> None:
    gold = tmp_path / "gold.tsv"
    gold.write_text("unhappy\tun happy\n\nredo\tre do\n", encoding="utf-8")
    merges = [("Ġ", "u"), ("Ġu", "n"), ("h", "a"), ("p", "p"), ("ha", "pp"), ("happ", "y")]
    tokenizer = registry.load(byte_bpe_file(tmp_path / "bpe", merges))
    # " un|happy" is right; " |r|e|d|o" has three boundaries inside the word, one of them right.
    assert boundary_scores(tokenizer, read_gold_words(gold)) == {
        "words": 2,
        "precision": 0.5,
        "recall": 1.0,
        "f1": pytest.approx(2 / 3),
    }


def test_gold_list_that_does_not_spell_its_words(tmp_path: Path) -> None:
    gold = tmp_path / "gold.tsv"
    gold.write_text("redo\tre do\nunhappy\tun hapy\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"gold\.tsv, line 2: write WORD<TAB>MORPHEMES"):
        read_gold_words(gold)


ENGLISH = [f"The number {n} is followed by the number {n + 1}, and that is all there is to it." for n in range(60)]
CHINESE = [f"数字{n}之后是数字{n + 1}，这就是全部。" for n in range(60)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    rows = [{"text": text, "lang": lang} for lang, texts in (("en", ENGLISH), ("zh", CHINESE)) for text in texts]
    (folder / "text.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    pairs = [{"text": {"en": one, "zh": other}} for one, other in zip(ENGLISH, CHINESE, strict=True)]
    (folder / "parallel.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pairs), encoding="utf-8")
    byte_bpe_file(folder / "bytes", [])
    byte_bpe_file(folder / "merged", [("Ġ", "t"), ("Ġt", "h"), ("Ġth", "e"), ("e", "r")])
    return folder


def test_command(project: Path) -> None:
    arguments = ["--tokenizer", "plain=bytes", "--tokenizer", "merged", "--lang-field", "lang"]
    arguments += ["--parallel", "parallel.jsonl", "--output", "out", "text.jsonl"]
    told = tokpack(project, "compare", *arguments).out
    assert "merged needs" in told
    found = json.loads((project / "out" / "comparison.json").read_bytes())
    assert (found["documents"], found["baseline"], found["languages"]) == (120, "plain", ["en", "zh-Hans"])
    size = sum(len(text.encode()) for text in ENGLISH + CHINESE)
    library = Tokenizer.from_file(str(project / "merged" / "tokenizer.json"))
    merged = sum(len(library.encode(text).ids) for text in ENGLISH + CHINESE)
    by_name = {row["tokenizer"]: row for row in found["tokenizers"]}
    assert (by_name["plain"]["tokens"], by_name["merged"]["tokens"]) == (size, merged)
    differences = {row["lang"]: row for row in found["differences"]}
    assert differences["all"]["ratio"] == pytest.approx(merged / size)
    assert differences["en"]["verdict"] == "shorter"
    # No merge applies to Chinese: exactly as many tokens, so there is nothing to be sure of.
    assert (differences["zh-Hans"]["ratio"], differences["zh-Hans"]["verdict"]) == (1.0, "not significant")
    aligned = {(row["tokenizer"], row["lang"]): row for row in found["parallel"]}
    english = sum(len(text.encode()) for text in ENGLISH)
    assert aligned["plain", "zh"]["premium"] == pytest.approx(sum(len(text.encode()) for text in CHINESE) / english)
    assert aligned["plain", "en"]["tokens_per_sentence"] == pytest.approx(english / 60)
    page = (project / "out" / "comparison.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "merged needs" in page
    assert sorted(path.suffix for path in (project / "out").iterdir()).count(".csv") == 7


def test_a_tokenizer_that_loses_text_is_not_called_shorter() -> None:
    """A word of a script that it has not seen is one unknown token to WordPiece."""
    settings: dict[str, object] = {"vocab_size": 300, "special_tokens": {"eod": "<|endoftext|>", "unk": "[UNK]"}}
    english = [f"the {word} of this and that" for word in "abcdefghijklmnopqrstuvwxyz"]
    candidates = [
        Candidate(family, train(TrainConfig.model_validate({"family": family} | settings), english))
        for family in ("byte_bpe", "wordpiece")
    ]
    greek = ["\u03b1\u03b2\u03b3 \u03b4\u03b5"] * 30
    texts, langs = pa.array(english + greek), pa.array(["en"] * len(english) + ["el"] * len(greek))
    batches = iter([pa.record_batch([texts, langs], names=["text", "lang"])])
    parallel = ParallelText(26, {"el": pa.array(greek[:26]), "en": pa.array(english)})
    found = compare(candidates, measure(candidates, batches), "byte_bpe", parallel)
    rows = {row["lang"]: row for row in found["differences"]}
    assert rows["el"]["ratio"] < 1
    assert (rows["el"]["verdict"], rows["el"]["unknown_share"]) == ("unknown tokens", 1.0)
    assert rows["en"]["verdict"] != "unknown tokens"
    assert found["tokenizers"][0]["unknown_share"] == 0
    assert [row["verdict"] for row in found["parallel"]][2:] == ["unknown tokens", "shorter"]
    assert "do not compare" in findings(found)[0]


def test_sweep_and_small_models(project: Path) -> None:
    arguments = ["--sweep-size", "280", "--sweep-size", "300", "--sweep-family", "byte_bpe", "--sweep-family"]
    arguments += ["wordpiece", "--train", "text.jsonl", "--model-seeds", "1", "--model-bytes", "10000"]
    arguments += ["--lang-field", "lang", "--output", "swept", "text.jsonl", "--json"]
    manifest = tokpack(project, "compare", *arguments).json
    found = json.loads((project / "swept" / "comparison.json").read_bytes())
    assert [row["size"] for row in found["sweep"]["sizes"]] == [280, 300]
    own = {row["tokenizer"]: row["vocabulary_utilization"] for row in found["tokenizers"]}
    for row in found["sweep"]["sizes"]:
        assert row["vocabulary_utilization"] == {
            family: own[f"{family}_{row['size']}"] for family in ("byte_bpe", "wordpiece")
        }
    page = (project / "swept" / "comparison.html").read_text(encoding="utf-8")
    assert page.count('<polyline class="family') == 2
    assert f"byte_bpe, 280 entries: {100 * own['byte_bpe_280']:.4g} % seen" in page
    assert [(row["family"], row["other"]) for row in found["sweep"]["pairs"]] == [("byte_bpe", "wordpiece")] * 2
    assert [row["tokenizer"] for row in found["small_model"]] == [
        f"{family}_{size}" for size in (280, 300) for family in ("byte_bpe", "wordpiece")
    ]
    assert all(0 < bits < 16 for row in found["small_model"] for bits in row["seeds"])
    # WordPiece drops white space.
    assert [row["verdict"] for row in found["small_model"]][:2] == ["baseline", "loses text"]
    assert "do not compare: one of them does not spell all of the text" in page
    assert [Path(entry["path"]).name for entry in manifest["inputs"]] == ["text.jsonl", "text.jsonl"]


def test_a_family_that_loses_text_is_in_no_spread(tmp_path: Path) -> None:
    """WordPiece of English makes unk of Greek; the spread is that of the two that spell it."""
    (tmp_path / "english.txt").write_text("the cat sat on the mat and the dog sat on the log\n" * 40)
    lines = ["ο σκύλος the cat", "η γάτα the dog", "the mat και the log"] * 10
    (tmp_path / "greek.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    arguments = ["--sweep-size", "300", "--train", "english.txt", "--output", "swept", "greek.jsonl"]
    families = [f"--sweep-family={family}" for family in ("byte_bpe", "wordpiece", "cnf_mce")]
    said = tokpack(tmp_path, "compare", *families, *arguments).out
    found = json.loads((tmp_path / "swept" / "comparison.json").read_bytes())["sweep"]
    (row,) = found["sizes"]
    assert list(row["lost_text"]) == ["wordpiece"]
    lengths = sorted(row["bytes_per_token"][family] for family in ("byte_bpe", "cnf_mce"))
    assert row["spread"] == pytest.approx(lengths[1] / lengths[0] - 1)
    assert row["pairs"] == 1
    assert [pair["verdict"] == "unknown tokens" for pair in found["pairs"]] == [True, False, True]
    assert "wordpiece does not compare: " in said
    alone = ["--sweep-family", "wordpiece", "--output", "alone", *arguments[:4], "greek.jsonl"]
    assert (
        "At 300 entries there are no two families to compare. wordpiece does not compare"
        in tokpack(tmp_path, "compare", *alone).out
    )


@pytest.mark.parametrize(
    ("family", "size", "said"),
    [
        ("modular_bpe", 300, "--sweep-family modular_bpe: the sweep trains byte_bpe, "),
        ("minimum_cost", 300, "--sweep-family minimum_cost: the sweep trains "),
        ("byte_bpf", 300, "--sweep-family byte_bpf: the sweep trains "),
        ("byte_bpe", 200, "byte_bpe of --sweep-size 200: `vocab_size` 200 is too small"),
        ("sentencepiece_bpe", 5000, "sentencepiece_bpe of --sweep-size 5000: `vocab_size` 5000 is more than"),
    ],
)
def test_what_the_sweep_cannot_train(tmp_path: Path, family: str, size: int, said: str) -> None:
    (tmp_path / "text.txt").write_text("ab ab")
    arguments = ["--sweep-family", family, "--sweep-size", str(size), "--train", "text.txt", "--output", "swept"]
    assert said in refused(tmp_path, "compare", *arguments, "text.txt")


def test_fewer_entries_than_the_size_of_the_sweep_are_told(tmp_path: Path) -> None:
    """Of "ab ab" only one pair occurs twice, so there are 257 entries, of which text and tokens show three."""
    (tmp_path / "text.txt").write_text("ab ab")
    sizes = [part for size in (300, 256, 400, 300) for part in ("--sweep-size", str(size))]
    sizes += ["--sweep-family", "byte_bpe"] * 2
    said = tokpack(tmp_path, "compare", *sizes, "--train", "text.txt", "--output", "swept", "text.txt").out
    assert said.count("byte_bpe has 257 entries: its text gives no more.") == 2
    assert "1.172 % of 256, 0.7782 % of 257, 0.7782 % of 257 entries" in said
    assert "-100 % of the entries added found use" in said


def test_a_seeded_unigram_takes_part_in_the_sweep(project: Path) -> None:
    (project / "seeds.txt").write_text("ion\nthe\n", encoding="utf-8")
    arguments = ["--sweep-size", "300", "--sweep-family", "byte_bpe", "--sweep-family", "sentencepiece_unigram"]
    arguments += ["--train", "text.jsonl", "--output", "seeded", "text.jsonl"]
    tokpack(project, "compare", *arguments, "--sweep-seeds", "seeds.txt", "--json")
    found = json.loads((project / "seeded" / "comparison.json").read_bytes())
    assert set(found["sweep"]["sizes"][0]["bytes_per_token"]) == {
        "byte_bpe",
        "sentencepiece_unigram",
        "seeded_unigram",
    }
    told = refused(project, "compare", *arguments, "--sweep-family", "seeded_unigram")
    assert "name their file with --sweep-seeds" in told


def test_what_cannot_be_compared(project: Path) -> None:
    base = ["--output", "no", "text.jsonl"]
    assert "give --tokenizer, or --sweep-size" in refused(project, "compare", *base)
    two = ["--tokenizer", "a=bytes", "--tokenizer", "a=merged"]
    assert "two tokenizers are named a" in refused(project, "compare", *two, *base)
    assert "none of the tokenizers: bytes" in refused(
        project, "compare", "--tokenizer", "bytes", "--baseline", "x", *base
    )
    assert not (project / "no").exists()


@pytest.mark.parametrize("texts", [[], [["", ""]]])
def test_no_text_is_no_comparison(texts: list[list[str]]) -> None:
    batches = [pa.record_batch({"text": one, "lang": pa.array([None] * len(one), pa.string())}) for one in texts]
    with pytest.raises(InputError, match="no text to compare"):
        measure([Candidate("bpe", trained("byte_bpe"))], iter(batches))


def test_white_space_gives_wordpiece_nothing_to_compare() -> None:
    batch = pa.record_batch({"text": [" ", "\n"], "lang": pa.array([None, None], pa.string())})
    with pytest.raises(InputError, match="wordpiece has no token"):
        measure([Candidate("bpe", trained("byte_bpe")), Candidate("wordpiece", trained("wordpiece"))], iter([batch]))


def test_sentences_without_a_token_have_no_ratio() -> None:
    candidates = [Candidate("one", trained("byte_bpe")), Candidate("other", trained("byte_bpe"))]
    batch = pa.record_batch({"text": ["the cat"], "lang": ["en"]})
    parallel = ParallelText(1, {"en": pa.array(["the cat"]), "zh": pa.array([""])})
    rows = compare(candidates, measure(candidates, iter([batch])), "one", parallel)["parallel"]
    found = {(row["tokenizer"], row["lang"]): (row["ratio"], row["low"], row["verdict"]) for row in rows}
    assert found["other", "zh"] == (None, None, "too few documents")
    assert found["other", "en"] == (1.0, 1.0, "too few documents")
