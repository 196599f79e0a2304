"""The configuration: every fault is told with file, line, key and the nearest right key."""

from pathlib import Path

import pytest

from tokpack_core.config import EngineConfig, TokenizerConfig, TrainConfig, parse_bytes
from tokpack_core.config.files import load_project
from tokpack_core.engine import default_engine
from tokpack_core.errors import ConfigError, TokpackError

GOOD = """\
corpora:
  zh_web:
    paths: ["data/zh/*.jsonl.zst"]
    lang: zh
  en_web:
    paths: [data/en]
tokenizers:
  zh_en_32k:
    family: byte_bpe
    vocab_size: 32000
    train_on: {zh_web: 3, en_web: 1}
    sample_bytes: 2GB
    special_tokens: {eod: "<|endoftext|>", pad: "<|pad|>"}
datasets:
  base_4k:
    tokenizer: zh_en_32k
    mixture: {zh_web: 1.0, en_web: 2.0}
    packing: {strategy: best_fit, sequence_length: 4096}
"""


def write(folder: Path, text: str, name: str = "a.yaml") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_good_configuration(tmp_path: Path) -> None:
    project = load_project(write(tmp_path / "configs", GOOD))
    assert project.base == tmp_path
    assert project.tokenizers["zh_en_32k"].sample_bytes == 2_000_000_000
    assert project.training_corpora("zh_en_32k") == {"en_web": 0.25, "zh_web": 0.75}
    assert project.encoded_pairs() == [("zh_en_32k", "en_web"), ("zh_en_32k", "zh_web")]
    assert project.corpora["zh_web"].normalize.unicode == "nfc"


def test_names_may_stand_in_several_files(tmp_path: Path) -> None:
    corpora, rest = GOOD.split("tokenizers:")
    write(tmp_path / "configs", corpora, "corpora.yaml")
    project = load_project(write(tmp_path / "configs", "tokenizers:" + rest, "other.yml"))
    assert list(project.datasets) == ["base_4k"]


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("    lang: zh", "    langs: zh", 4, r"corpora\.zh_web\.langs: unknown key; did you mean `lang`\?"),
        (
            "    lang: zh",
            "    normalize: {unicod: nfc}",
            4,
            r"normalize\.unicod: unknown key; did you mean `unicode`\?",
        ),
        ("    lang: zh", "    normalize: {unicode: nfcc}", 4, r"unicode: .*not 'nfcc'; did you mean `nfc`\?"),
        ("    lang: zh", "    splits: {train: 0.9, valid: 0.2}", 4, r"splits: the shares must sum to 1, not to 1\.1"),
        ("    lang: zh", "    on_error: ignore", 4, r"on_error: .*'error', 'skip' or 'replace'"),
        ("family: byte_bpe", "family: byte_bp", 9, r"family: .*did you mean `byte_bpe`\?"),
        ("vocab_size: 32000", "vocab_size: many", 10, r"vocab_size: .*integer"),
        ("sample_bytes: 2GB", "sample_bytes: 2 pounds", 12, r"'2 pounds' is not a size"),
        (
            "train_on: {zh_web: 3",
            "train_on: {zh_wed: 3",
            11,
            r"train_on: there is no corpus `zh_wed`; did you mean `zh_web`",
        ),
        ("tokenizer: zh_en_32k", "tokenizer: zh_en_64k", 16, r"no tokenizer `zh_en_64k`; did you mean `zh_en_32k`"),
        ("mixture: {zh_web: 1.0", "mixture: {zh_web: -1", 17, r"mixture: shares must be positive"),
        ("strategy: best_fit", "strategy: bestfit", 18, r"strategy: .*did you mean `best_fit`"),
        ("sequence_length: 4096", "sequence_length: 0", 18, r"sequence_length: .*greater than or equal to 1"),
        ("  base_4k:", "  Base_4k:", 15, r"the name `Base_4k` in datasets must match"),
        ("datasets:", "dataset:", 14, r"unknown section `dataset`; did you mean `datasets`"),
        ("    paths: [data/en]", "    lang: en", 5, r"corpora\.en_web\.paths: this key is required"),
        ("    paths: [data/en]", "    paths: data/en", 6, r"corpora\.en_web\.paths: .*list"),
        ("    paths: [data/en]", "   paths: [data/en", 7, r"not valid YAML"),
        ('eod: "<|endoftext|>", ', "", 8, r"tokenizers\.zh_en_32k: `special_tokens` needs `eod`"),
        ("    paths: [data/en]", '    paths: [""]', 6, r"corpora\.en_web\.paths\.0: .*at least 1 character"),
        ("    lang: zh", f"    split_seed: {2**63}", 4, r"split_seed: .*less than"),
        ("sample_bytes: 2GB", f"sample_bytes: {2**63}", 12, r"sample_bytes: .*less than"),
        ("    sample_bytes: 2GB", f"    seed: {-(2**63) - 1}", 12, r"seed: .*greater than or equal to"),
        ("    lang: zh", r'    lang: "\ud800"', 4, r"corpora\.zh_web\.lang: this holds half of a surrogate pair"),
        ("    paths: [data/en]", r'    paths: ["\ud800"]', 6, r"corpora\.en_web\.paths\.0: this holds half of"),
        ('eod: "<|endoftext|>", ', r'eod: "\udc00", ', 13, r"special_tokens\.eod: this holds half of a"),
        ("  base_4k:", f"  {'b' * 101}:", 15, r"in datasets must match .* at most 100 characters"),
    ],
)
def test_each_fault_names_line_and_key(tmp_path: Path, old: str, new: str, line: int, said: str) -> None:
    assert GOOD.count(old) == 1
    folder = write(tmp_path / "configs", GOOD.replace(old, new))
    with pytest.raises(ConfigError, match=said) as error:
        load_project(folder)
    assert str(error.value).startswith(f"{folder / 'a.yaml'}:{line}: ")


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("lang: zh", "langs: zh").replace("byte_bpe", "byte_bp")
    with pytest.raises(ConfigError) as error:
        load_project(write(tmp_path / "configs", text))
    assert [line.split(":")[1] for line in str(error.value).splitlines()] == ["4", "9"]


def test_one_name_in_two_files(tmp_path: Path) -> None:
    write(tmp_path / "configs", GOOD)
    folder = write(tmp_path / "configs", "corpora:\n  zh_web: {paths: [x]}\n", "b.yaml")
    with pytest.raises(ConfigError, match=r"b\.yaml:2: corpora\.zh_web is already defined at .*a\.yaml:2"):
        load_project(folder)


def test_one_key_twice(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="duplicate key"):
        load_project(write(tmp_path / "configs", GOOD.replace("    lang: zh", "    lang: zh\n    lang: en")))


def test_corpora_of_a_tokenizer_share_one_unicode_form(tmp_path: Path) -> None:
    text = GOOD.replace("    lang: zh", "    normalize: {unicode: nfkc}")
    with pytest.raises(ConfigError, match=r"a\.yaml:11: .*one normalize\.unicode, found en_web: nfc, zh_web: nfkc"):
        load_project(write(tmp_path / "configs", text))


FORM = "    normalize: {unicode: %s}\n"


@pytest.mark.parametrize(
    ("trained", "mixed", "agree"),
    [("nfc", "nfkc", True), ("none", "nfc", True), ("nfkc", "nfc", False), ("nfc", "none", False)],
)
def test_a_tokenizer_changes_no_text_of_a_mixture(tmp_path: Path, trained: str, mixed: str, agree: bool) -> None:
    text = GOOD.replace("zh_web: 3, ", "").replace("    lang: zh\n", FORM % mixed)
    folder = write(tmp_path / "configs", text.replace("[data/en]\n", "[data/en]\n" + FORM % trained))
    if agree:
        load_project(folder)
    else:
        with pytest.raises(
            ConfigError, match=rf"a\.yaml:18: .*form {trained}, .* `zh_web` of normalize.unicode {mixed}"
        ):
            load_project(folder)


EOD = 'special_tokens: {eod: "<|endoftext|>"}'
OF_BYTES = "vocab_size: 3000, train_on: {zh_web: 1}, " + EOD


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("family: litetoken, base: pieces, train_on: {zh_web: 1}", r"base: no litetoken can be made from a sentence"),
        ("family: litetoken, base: picky, train_on: {zh_web: 1}", r"base: no litetoken .* with `delete_threshold`"),
        ("family: litetoken, base: exact, train_on: {zh_web: 1}", r"base: no litetoken .* own \(`export: exact`\)"),
        ("family: supertokens, base: ranks, train_on: {zh_web: 1}", r"base: no supertokens .* a file in \.tiktoken"),
        (
            "family: minimum_cost, base: words, train_on: {zh_web: 1}",
            r"base: no minimum_cost .* from a wordpiece, only",
        ),
        ("family: supertokens, base: picky, max_words: 1, train_on: {zh_web: 1}", "`max_words` 1 leaves no phrase"),
        (f"family: superbpe, transition_size: 3001, {OF_BYTES}", r"`transition_size` 3001 is not between 257 .* 3000"),
        (f"family: superbpe, transition_size: 256, {OF_BYTES}", r"`transition_size` 256 is not between 257 "),
        (f'family: boundless_bpe, mergeable: "(", {OF_BYTES}', r"`mergeable`, `\(`, is no regular expression"),
        ("family: cnf_mce, vocab_size: 256, train_on: {zh_web: 1}, " + EOD, "`vocab_size` 256 is too small: .* 257"),
    ],
)
def test_what_can_never_be_trained_is_told_before_anything_runs(tmp_path: Path, entry: str, said: str) -> None:
    others = f"""\
  pieces: {{family: sentencepiece_bpe, {OF_BYTES}}}
  picky: {{family: byte_bpe, delete_threshold: 0.9, {OF_BYTES}}}
  words: {{family: wordpiece, {OF_BYTES}}}
  exact: {{family: boundless_bpe, {OF_BYTES}}}
  ranks: {{family: pretrained, path: a.tiktoken, train_on: {{zh_web: 1}}}}
"""
    good = GOOD.replace("datasets:", others + "datasets:")
    load_project(write(tmp_path / "good", good))
    folder = write(tmp_path / "configs", good.replace("datasets:", f"  wrong: {{{entry}}}\ndatasets:"))
    with pytest.raises(ConfigError, match=rf"a\.yaml:19: tokenizers\.wrong.*{said}"):
        load_project(folder)


def test_bases_of_every_kind_that_fits(tmp_path: Path) -> None:
    fits = f"""\
  cleaned: {{family: litetoken, base: zh_en_32k, train_on: {{zh_web: 1}}}}
  ranks: {{family: pretrained, path: a.tiktoken, train_on: {{zh_web: 1}}}}
  cleaned_ranks: {{family: litetoken, base: ranks, train_on: {{zh_web: 1}}}}
  longer: {{family: supertokens, base: zh_en_32k, train_on: {{zh_web: 1}}}}
  shorter: {{family: minimum_cost, base: longer, train_on: {{zh_web: 1}}}}
  all_words: {{family: superbpe, transition_size: 3000, {OF_BYTES}}}
  cleaned_pieces: {{family: litetoken, base: all_words, train_on: {{zh_web: 1}}}}
  stock: {{family: boundless_bpe, export: hf, {OF_BYTES}}}
  cleaned_words: {{family: litetoken, base: stock, train_on: {{zh_web: 1}}}}
  small: {{family: byte_bpe, alphabet: seen_bytes, vocab_size: 100, train_on: {{zh_web: 1}},
    special_tokens: {{eod: "<|endoftext|>", unk: "<unk>"}}}}
"""
    load_project(write(tmp_path / "configs", GOOD.replace("datasets:", fits + "datasets:")))


def test_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no configuration found"):
        load_project(tmp_path / "configs")


def test_pretrained_needs_a_path() -> None:
    with pytest.raises(ValueError, match="needs `path`"):
        TokenizerConfig.model_validate({"family": "pretrained", "train_on": {"a": 1}})


@pytest.mark.parametrize(
    ("family", "option", "takers"),
    [
        (
            "sentencepiece_bpe",
            {"pretokenizer": "cl100k"},
            "byte_bpe, word, superbpe, boundless_bpe, modular_bpe, cnf_mce",
        ),
        (
            "byte_bpe",
            {"character_coverage": 0.9995},
            "sentencepiece_bpe, sentencepiece_unigram, modular_unigram, wordpiece",
        ),
        ("byte_bpe", {"wordpiece_criterion": "frequency"}, "wordpiece"),
        ("sentencepiece_unigram", {"min_frequency": 2}, "byte_bpe, wordpiece, character, word"),
        ("word", {"path": "x.model"}, "pretrained"),
    ],
)
def test_an_option_of_other_families_is_an_error(family: str, option: dict[str, object], takers: str) -> None:
    with pytest.raises(ValueError, match=rf"`{next(iter(option))}` has no effect on {family}: it is for {takers}"):
        TrainConfig.model_validate({"family": family, "vocab_size": 1000} | option)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"family": "superbpe", "export": "hf"}, "`export` has no effect on superbpe of pieces"),
        (
            {"family": "superbpe", "transition_size": 500, "mergeable": "a"},
            "`mergeable` has no effect",
        ),
        (
            {"family": "superbpe", "transition_size": 500, "tie_winner": "word"},
            "`tie_winner` has no effect on superbpe",
        ),
        (
            {"family": "superbpe", "joins": "words", "transition_size": 500, "tie_winner": "word"},
            "`tie_winner` has no effect on superbpe with a `transition_size` in numbers",
        ),
        ({"family": "cnf_mce", "refills": 0, "refill_share": 0.2}, "`refill_share` has no effect with `refills: 0`"),
    ],
)
def test_an_option_that_others_leave_without_an_effect_is_an_error(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TrainConfig.model_validate({"vocab_size": 1000} | options)
    harmless = {"joins": "words", "transition_size": "auto", "export": "exact", "mergeable": "a", "tie_winner": "word"}
    TrainConfig.model_validate({"family": "superbpe", "vocab_size": 1000} | harmless)
    TrainConfig.model_validate({"family": "superbpe", "vocab_size": 1000, "mergeable": "a", "tie_winner": "word"})


def test_options_of_the_graph_that_would_have_no_effect() -> None:
    pretrained = {"family": "pretrained", "path": "x.json", "train_on": {"a": 1}}
    TokenizerConfig.model_validate(pretrained)
    with pytest.raises(ValueError, match="`retrain` has no effect on a pretrained tokenizer"):
        TokenizerConfig.model_validate(pretrained | {"retrain": "auto"})
    with pytest.raises(ValueError, match=r"`checks\.warn: \[fairness\]` has no effect without the limit"):
        TokenizerConfig.model_validate(pretrained | {"checks": {"warn": ["fairness"]}})
    with pytest.raises(ValueError, match="`address` has no effect on the engine `local`"):
        EngineConfig.model_validate({"address": "10.0.0.1:6379"})


@pytest.mark.parametrize("option", [{"special_tokens": {"eod": "<\udcff>"}}, {"pretokenizer": "regex:\udcff|."}])
def test_arguments_that_are_no_utf8(option: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="write characters in UTF-8"):
        TrainConfig.model_validate({"family": "byte_bpe", "vocab_size": 1000} | option)


def test_a_default_written_out_changes_no_parameters() -> None:
    plain = {"family": "byte_bpe", "vocab_size": 1000}
    written, left_out = (TrainConfig.model_validate(plain | more).parameters() for more in ({"min_frequency": 2}, {}))
    assert written == left_out
    assert TrainConfig.model_validate(plain | {"min_frequency": 3}).parameters() != left_out


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2 * 10**9), ("512 MiB", 2**29), ("1.5kb", 1500), (7, 7), ("10", 10)]
)
def test_sizes(text: str | int, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("setting", ["0", "-1", "x", "1.5", "²"])
def test_workers_are_a_positive_number(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv("TOKPACK_WORKERS", setting)
    with pytest.raises(TokpackError, match=r"is not a number of processes, 1 or more"):
        default_engine()


@pytest.mark.parametrize(
    ("written", "engine"),
    [
        ("", EngineConfig()),
        ("engine: local\n", EngineConfig()),
        ("engine: ray\n", EngineConfig(name="ray", address="auto")),
        ("engine: {name: ray, address: '10.0.0.1:6379'}\n", EngineConfig(name="ray", address="10.0.0.1:6379")),
    ],
)
def test_the_engine(tmp_path: Path, written: str, engine: EngineConfig) -> None:
    assert load_project(write(tmp_path / "configs", GOOD + written)).engine == engine


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("engine: rai\n", r"engine\.name: .*did you mean `ray`"),
        ("engine: {name: ray, adress: x}\n", r"engine\.adress: unknown key; did you mean `address`\?"),
        ("engine: [ray]\n", r"engine must be a mapping"),
        ("engin: ray\n", r"unknown section `engin`; did you mean `engine`"),
    ],
)
def test_a_wrong_engine(tmp_path: Path, written: str, said: str) -> None:
    folder = write(tmp_path / "configs", GOOD + written)
    with pytest.raises(ConfigError, match=rf"a\.yaml:{len(GOOD.splitlines()) + 1}: .*{said}"):
        load_project(folder)
