"""Unigram from a vocabulary of one's own: entries are counted, offered first, and reported."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.command_line import tokpack
from tests.small_project import write_small_project
from tests.test_families_in_graph import LENIENT, STRICT
from tests.tokenizer_samples import documents, train
from tokpack_core.config import TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.sentencepiece.seed_pieces import SeedPieces
from tokpack_core.tokenizers.sentencepiece.seed_vocabulary import read_seed_vocabulary, with_entries
from tokpack_core.tokenizers.sentencepiece.words import SeenText, count_words

ENTRIES = ["Anweisung", "ing", "statement", "zyzzyva"]


def test_entries_are_counted_with_and_without_a_space() -> None:
    words = count_words(iter([pa.array(["singing the ring", "ring"])]), SeenText()).counted
    mined = SeedPieces(["ng", "ing", " ri"], np.array([4, 4, 1]))
    found = with_entries(mined, ["ing", "the", "absent"], words)
    assert dict(zip(found.pieces, found.counts.tolist(), strict=True)) == {
        "ing": 4,
        "the": 1,
        " the": 1,
        "ng": 4,
        " ri": 1,
    }
    assert found.pieces == ["ing", "the", " the", "ng", " ri"]


def test_the_figures_say_how_many_were_kept(tmp_path: Path) -> None:
    path = tmp_path / "entries.txt"
    path.write_text("\n".join(ENTRIES) + "\n\n", encoding="utf-8")
    config = TrainConfig(family="sentencepiece_unigram", vocab_size=700, seed_vocabulary=str(path))
    made = train(config, documents()[:20])
    tokens = set(made.vocabulary()["token"].to_pylist())
    kept = [entry for entry in ENTRIES if entry.encode() in tokens or f" {entry}".encode() in tokens]
    assert (made.training["seed_entries"], made.training["seed_entries_kept"]) == (4, len(kept))
    assert {"ing", "statement"} <= set(kept)
    assert "zyzzyva" not in kept


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\n \n", "has no entries"), (b"ok\n\xff\n", "byte 3 is no UTF-8"), (None, "cannot be read")],
)
def test_a_bad_file_is_one_sentence(content: bytes | None, said: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "entries.txt").write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_seed_vocabulary(tmp_path / "entries.txt")


def test_in_the_graph_its_content_is_an_input(tmp_path: Path) -> None:
    project = write_small_project(tmp_path)
    (tmp_path / "entries.txt").write_text("statement\n")
    project.edit(STRICT, LENIENT)
    project.edit("family: byte_bpe", "family: sentencepiece_unigram\n    seed_vocabulary: entries.txt")
    built = project.build("tokenizer_model/bpe_600")["tokenizer_model/bpe_600"]
    (tmp_path / "entries.txt").write_text("other\n")
    kept = project.build("tokenizer_model/bpe_600")["tokenizer_model/bpe_600"]
    assert kept.entry.object == built.entry.object
    assert kept.stale is not None
    assert "training text changed" in kept.stale
    (tmp_path / "entries.txt").unlink()
    with pytest.raises(InputError, match=r"there is no file .*entries\.txt"):
        project.build("tokenizer_model/bpe_600")


def test_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n".join(documents()[:20]), encoding="utf-8")
    (tmp_path / "entries.txt").write_text("statement\n")
    options = ("--family", "sentencepiece_unigram", "--vocab-size", "700", "--seed-vocabulary", "entries.txt")
    counts = tokpack(tmp_path, "train", *options, "--output", "out", "--json", "text.txt").json["counts"]
    assert (counts["seed_entries"], counts["seed_entries_kept"]) == (1, 1)
    assert counts["export_check"]["transformers"]["written"]
