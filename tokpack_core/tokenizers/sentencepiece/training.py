"""SentencePiece BPE and Unigram (Kudo and Richardson 2018), trained on counted words, so that no text is lost.

What the library would do with training text, and what is done about it here:
- It skips sentences longer than `max_sentence_length`: it gets words (`sentencepiece_words`), none of them too long, as
  `word <tab> count`. Words are the same units as its own, split further where no piece can cross.
- It skips a sentence that holds U+2585 and takes U+2581 for a space: these two, NUL and the library's own mark (U+001F)
  end words and are left out; they are encoded as bytes.
- It splits ASCII and full-width digits (`split_digits`); words split those of all scripts.
- A tab separates the columns and a line end the lines of what it reads: private-use characters that the text does not
  hold stand in for both, so code keeps its indentation, and the pieces get their characters back.
- Its seed pieces for Unigram ignore the counts: they are found here (`seed_pieces`) and given as a file.
- Paths of that file and of the rule table would stand in the model, and are removed.
- Unigram's scores are rounded, so that their sums are exact (`exact_scores`).

Pieces have at most 16 characters (the library's default). Threads are a constant, because they shape Unigram's sums.
Words come in byte order: neither family depends on the order of documents.

Compared with the library's own training on sentences, the pieces differ a little (other sums of floats, other seeds);
docs/measured.md says by how much.

Ids: special tokens first, in the order eod, pad, bos, unk (SentencePiece must have unk: `<unk>` if none is
configured), then 256 byte pieces, then pieces by score. The vocabulary has exactly the size asked for, or training
is refused with the size that is possible.
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import sentencepiece

from tokpack_core.bpe.pretoken_counts import PretokenCounts
from tokpack_core.bpe.unicode_categories import CODE_POINTS
from tokpack_core.config import TrainConfig, UnicodeForm
from tokpack_core.corpus.text_buffers import text_array
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.byteification.token_bytes import META_SPACE
from tokpack_core.tokenizers.common_hanzi import level_one_hanzi
from tokpack_core.tokenizers.metadata import Metadata
from tokpack_core.tokenizers.sentencepiece.exact_scores import on_grid
from tokpack_core.tokenizers.sentencepiece.model import SentencePieceTokenizer
from tokpack_core.tokenizers.sentencepiece.proto import as_published, with_scores
from tokpack_core.tokenizers.sentencepiece.seed_pieces import SeedPieces, seed_pieces
from tokpack_core.tokenizers.sentencepiece.seed_vocabulary import entries_kept, read_seed_vocabulary, with_entries
from tokpack_core.tokenizers.sentencepiece.words import LONGEST, SeenText, Words, count_words
from tokpack_core.tokenizers.training_text import NO_TEXT, LookAlikes
from tokpack_core.tokenizers.unicode_rules import nfc_rules_tsv

THREADS = 16
MOST_BYTES = 4 * 18 * LONGEST
"""The library's limit on a word; NFKC makes 18 characters of one at most."""
PRIVATE_USE = range(0xE000, 0xF8FF)
SEEDS_PER_ENTRY = 2.5
"""Seed pieces for each entry of Unigram's vocabulary; the library's default is a million in all."""
DEFAULT_UNK = "<unk>"
MOST_PIECES = 10**9
"""The library multiplies the size by 1.1 in 32 bits, and prunes for ever when that overflows; no text gives so many."""

TOO_LARGE = re.compile(r"set it to a value <= (\d+)")
TOO_SMALL = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


def train_sentencepiece(config: TrainConfig, texts: Iterator[pa.Array], unicode: UnicodeForm) -> SentencePieceTokenizer:
    """Train on an iterator of string arrays, which is read once; its different words are held in memory.

    Raises InputError for an empty corpus and a vocabulary larger or smaller than the corpus allows (with the limit).
    """
    special_tokens = config.special_tokens.by_role()
    special_tokens.setdefault("unk", DEFAULT_UNK)
    if len(set(special_tokens.values())) < len(special_tokens):
        raise InputError(f"{DEFAULT_UNK!r} is SentencePiece's own unk: use another string or name it as `unk`")
    seen = SeenText()
    look_alikes = LookAlikes(special_tokens.values())
    words = count_words(look_alikes.counting(texts), seen)
    if not words.counted.counts.size:
        raise InputError(NO_TEXT)
    entries = read_seed_vocabulary(Path(config.seed_vocabulary)) if config.seed_vocabulary else []
    stand_ins = free_characters(words.characters, set().union(*special_tokens.values()))
    settings = control_symbols(special_tokens)
    with tempfile.TemporaryDirectory() as folder:
        settings |= normalization(unicode, Path(folder))
        if config.family == "sentencepiece_bpe":
            model = run_trainer(config, as_tsv(words.counted, stand_ins), settings)
        else:
            model = train_unigram(config, words, entries, stand_ins, settings, Path(folder))
    described = {
        "vocab_size": config.vocab_size,
        "character_coverage": config.character_coverage,
        "required_characters": config.required_characters,
        "tie_break": "sentencepiece",
    }
    lengths = np.diff(words.counted.offsets)
    training = {
        "documents": seen.documents,
        "bytes": seen.bytes,
        "bytes_dropped": seen.bytes - int((lengths * words.counted.counts).sum()) - words.reserved_bytes,
        "different_words": words.counted.counts.size,
        "reserved_characters": words.reserved_characters,
        **look_alikes.figures(),
    }
    metadata = Metadata(config.family, unicode, special_tokens, described, training)
    published = as_published(model, {stand_in: character for character, stand_in in stand_ins.items()})
    if config.family == "sentencepiece_unigram":
        published = with_scores(published, on_grid)
    tokenizer = SentencePieceTokenizer(published, metadata, "the trained tokenizer")
    if entries:
        kept = entries_kept(entries, tokenizer.vocabulary()["token"].to_pylist())
        training |= {"seed_entries": len(entries), "seed_entries_kept": kept}
    return tokenizer


def train_unigram(
    config: TrainConfig,
    words: Words,
    entries: list[str],
    stand_ins: dict[str, str],
    settings: dict[str, Any],
    folder: Path,
) -> bytes:
    """Few seeds are enough as a rule, and cost less; if too few of them are left in the end, all that there may be."""
    chosen = covered(words.characters, config.character_coverage)
    chosen[[ord(character) for character in required(config)]] = True
    seeds = seed_pieces(words.counted, chosen)
    few = int(SEEDS_PER_ENTRY * (config.vocab_size or 0))
    for taken in (seeds.first(few), seeds):
        if entries:
            taken = with_entries(taken, entries, words.counted)
        given = settings | {"seed_sentencepieces_file": write_seeds(taken, stand_ins, folder)}
        try:
            return run_trainer(config, as_tsv(words.counted, stand_ins), given)
        except VocabularyTooLarge as error:
            refused = error
    raise refused


def required(config: TrainConfig) -> list[str]:
    """Characters that have a piece whatever the text holds."""
    return [] if config.required_characters is None else level_one_hanzi()


def free_characters(counts: npt.NDArray[np.int64], taken: set[str]) -> dict[str, str]:
    """A private-use character that neither the text nor a special token holds, for the tab and for the line end."""
    free = [code for code in PRIVATE_USE if not counts[code] and chr(code) not in taken]
    if len(free) < 2:
        raise InputError(
            "the training sample holds every private-use character: remove two of U+E000 to U+F8FE from it"
        )
    return {"\t": chr(free[0]), "\n": chr(free[1])}


def covered(counts: npt.NDArray[np.int64], coverage: float) -> npt.NDArray[np.bool_]:
    """bool [0x110000]: the characters that the library will give a piece, by count and then by code point."""
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    before = np.cumsum(counts[order]) - counts[order]
    chosen = np.zeros(CODE_POINTS, bool)
    chosen[order[(before / counts.sum()).astype(np.float32) < np.float32(coverage)]] = True
    return chosen


def as_tsv(words: PretokenCounts, stand_ins: dict[str, str]) -> Iterator[str]:
    texts = text_array(words.data, words.offsets, pa.large_string())
    for character, stand_in in stand_ins.items():
        texts = pc.replace_substring(texts, character, stand_in)
    counts = pa.array(words.counts).cast(pa.large_string())
    lines = pc.binary_join_element_wise(texts, counts, pa.scalar("\t", pa.large_string()))
    for start in range(0, len(lines), 2**16):
        yield from lines.slice(start, 2**16).to_pylist()


def write_seeds(seeds: SeedPieces, stand_ins: dict[str, str], folder: Path) -> str:
    written = str.maketrans(stand_ins | {" ": META_SPACE})
    path = folder / "seeds.tsv"
    lines = (f"{piece.translate(written)}\t{count}\n" for piece, count in zip(seeds.pieces, seeds.counts, strict=True))
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(lines)
    return str(path)


def normalization(unicode: UnicodeForm, folder: Path) -> dict[str, Any]:
    if unicode != "nfc":
        return {"normalization_rule_name": "identity" if unicode == "none" else "nfkc"}
    path = folder / "nfc.tsv"
    path.write_text(nfc_rules_tsv(), encoding="ascii")
    return {"normalization_rule_tsv": str(path)}


def run_trainer(config: TrainConfig, lines: Iterator[str], settings: dict[str, Any]) -> bytes:
    writer = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=lines,
            input_format="tsv",
            model_writer=writer,
            model_type=config.family.removeprefix("sentencepiece_"),
            vocab_size=min(config.vocab_size or 0, MOST_PIECES),
            character_coverage=config.character_coverage,
            num_threads=THREADS,
            max_sentence_length=MOST_BYTES,
            byte_fallback=True,
            split_digits=True,
            allow_whitespace_only_pieces=True,
            remove_extra_whitespaces=False,
            add_dummy_prefix=False,
            required_chars="".join(required(config)),
            minloglevel=2,
            **settings,
        )
    except (RuntimeError, OSError) as error:
        raise refusal(config.vocab_size, str(error)) from None
    return writer.getvalue()


def control_symbols(special_tokens: dict[str, str]) -> dict[str, Any]:
    """The roles as SentencePiece's own control symbols, which text never matches; eod is its eos."""
    names = {"eod": "eos", "pad": "pad", "bos": "bos", "unk": "unk"}
    ids = {role: place for place, role in enumerate(role for role in special_tokens if role in names)}
    settings: dict[str, Any] = {f"{name}_id": ids.get(role, -1) for role, name in names.items()}
    settings |= {f"{names[role]}_piece": special_tokens[role] for role in ids}
    others = [text for role, text in special_tokens.items() if role not in names]
    return settings | ({"control_symbols": others} if others else {})


class VocabularyTooLarge(InputError):
    """The sample, or the seeds, give fewer pieces."""

    def __init__(self, vocab_size: int | None, possible: int) -> None:
        """possible: the most entries that they give."""
        super().__init__(
            f"`vocab_size` {vocab_size} is more than the training sample can give: lower it to {possible} or add text"
        )
        self.possible = possible


class VocabularyTooSmall(InputError):
    """The characters of the sample have no room."""

    def __init__(self, vocab_size: int | None, needed: int, sample: str = "the training sample") -> None:
        """needed: the fewest entries that hold them; sample: what holds the characters."""
        super().__init__(
            f"`vocab_size` {vocab_size} is less than the characters of {sample} need: "
            f"raise it to {needed} or more, or lower `character_coverage`"
        )
        self.needed = needed


def refusal(vocab_size: int | None, message: str) -> InputError:
    if found := TOO_LARGE.search(message):
        return VocabularyTooLarge(vocab_size, int(found[1]))
    if found := TOO_SMALL.search(message):
        return VocabularyTooSmall(vocab_size, int(found[1]))
    return InputError(f"SentencePiece refused the training: {message}")
