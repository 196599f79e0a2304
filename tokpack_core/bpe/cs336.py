"""Byte-level BPE behind the interface that Stanford's CS336 asks for in assignment 1: `train_bpe` and `Tokenizer`.

GPT-2's regex; ties go to the lexicographically greatest pair of byte strings. Special tokens are cut out before
anything else, the longest first where they overlap, and the text between two of them is a document.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import regex

from tokpack_core.bpe.merge_settings import MergeSettings
from tokpack_core.bpe.training import train_merges
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.byteification.token_bytes import byte_level_bytes
from tokpack_core.tokenizers.pretokenizers import SPLITS

READ_BYTES = 2**23
ENCODE_CHARACTERS = 2**16
"""What `encode_iterable` gathers before it encodes."""
NEVER = regex.compile(r"(?!)")
BEFORE_SPACE = regex.compile(r"(?r)(?<=\S)(?=\s)")
"""No pretoken of GPT-2's regex reaches over such a place, whatever stands around it."""


def train_bpe(
    input_path: str | PathLike[str], vocab_size: int, special_tokens: list[str], workers: int = 1
) -> tuple[dict[int, bytes], list[tuple[bytes, bytes]]]:
    """Vocabulary (id → bytes: special tokens, the 256 bytes, then merges) and merges in their order.

    Raises InputError if the file cannot be read or is no UTF-8, or `vocab_size` has no room for the special tokens.
    """
    if vocab_size < 256 + len(special_tokens):
        raise InputError(
            f"vocab_size {vocab_size} is too small: bytes and special tokens need {256 + len(special_tokens)}"
        )
    path = Path(input_path)
    settings = MergeSettings(vocab_size - len(special_tokens), tie_break="lexicographic_greatest")
    merges, _ = train_merges(documents(path, special_tokens), SPLITS["gpt2"], settings, workers)
    made = merges.tokens[256:]
    tokens = [*(token.encode() for token in special_tokens), *(bytes([byte]) for byte in range(256)), *made]
    pairs = zip(merges.left.tolist(), merges.right.tolist(), strict=True)
    return dict(enumerate(tokens)), [(merges.tokens[left], merges.tokens[right]) for left, right in pairs]


def documents(path: Path, special_tokens: list[str]) -> Iterator[pa.Array]:
    """What stands between special tokens, read piece by piece."""
    border = any_of([token.encode() for token in special_tokens])
    longest = max(map(len, map(str.encode, special_tokens)), default=0)
    rest = b""
    try:
        with path.open("rb") as file:
            while block := file.read(READ_BYTES):
                rest += block
                # One that begins near the end may turn out to be a longer one.
                found = [match.span() for match in border.finditer(rest) if match.start() + longest <= len(rest)]
                if found:
                    starts = [0, *(stop for _, stop in found)]
                    stops = [start for start, _ in found]
                    yield pa.array([rest[a:b].decode() for a, b in zip(starts[:-1], stops, strict=True)], pa.string())
                    rest = rest[starts[-1] :]
        yield pa.array([part.decode() for part in border.split(rest)], pa.string())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no UTF-8 ({error.reason}): convert it") from None


def any_of(tokens: list[bytes]) -> Any:
    """A pattern for the longest of the tokens that stands at a place."""
    escaped = [regex.escape(token) for token in sorted(tokens, key=len, reverse=True)]
    return regex.compile(b"|".join(escaped) or rb"(?!)")


class Tokenizer:
    def __init__(
        self, vocab: dict[int, bytes], merges: list[tuple[bytes, bytes]], special_tokens: list[str] | None = None
    ) -> None:
        """Special tokens that the vocabulary lacks are appended; raises InputError if it lacks a byte or a merge."""
        # The encoder loads kernels, which training a small text does without.
        from tokpack_core.bpe.encoder import BpeModel, ByteBpeEncoder

        self.vocab = dict(vocab)
        ids = {token: token_id for token_id, token in vocab.items()}
        for token in special_tokens or []:
            if token.encode() not in ids:
                ids[token.encode()] = max(self.vocab, default=-1) + 1
                self.vocab[ids[token.encode()]] = token.encode()
        self._special = {token: ids[token.encode()] for token in special_tokens or []}
        names = sorted(self._special, key=len, reverse=True)
        self._border = regex.compile("|".join(map(regex.escape, names))) if names else NEVER
        self._longest = max(map(len, names), default=0)
        try:
            rows = [(ids[left], ids[right], ids[left + right]) for left, right in merges]
            byte_ids = np.array([ids[bytes([byte])] for byte in range(256)], np.int32)
        except KeyError as error:
            raise InputError(
                f"the vocabulary lacks the token {error.args[0]!r}: give the one that its merges made"
            ) from None
        left, right, token_ids = np.array(rows, np.int32).reshape(-1, 3).T.copy()
        model = BpeModel(byte_ids, left, right, token_ids, np.arange(len(rows), dtype=np.int32))
        self._encoder = ByteBpeEncoder(model, SPLITS["gpt2"])

    @classmethod
    def from_files(
        cls,
        vocab_filepath: str | PathLike[str],
        merges_filepath: str | PathLike[str],
        special_tokens: list[str] | None = None,
    ) -> Tokenizer:
        """From `vocab.json` and `merges.txt` as GPT-2 published them, in the byte-level alphabet."""
        names = json.loads(Path(vocab_filepath).read_text(encoding="utf-8"))
        vocab = {token_id: content_of(name) for name, token_id in names.items()}
        lines = Path(merges_filepath).read_text(encoding="utf-8").splitlines()
        pairs = [line.split(" ") for line in lines if line and not line.startswith("#version")]
        return cls(vocab, [(content_of(left), content_of(right)) for left, right in pairs], special_tokens)

    def encode(self, text: str) -> list[int]:
        parts, found = [], []
        done = 0
        for match in self._border.finditer(text):
            parts.append(text[done : match.start()])
            found.append(self._special[match.group()])
            done = match.end()
        encoded = self._encoder.encode(pa.array([*parts, text[done:]], pa.large_string()))
        return list(np.insert(encoded.ids, encoded.offsets[1:-1], np.array(found, np.int32)).tolist())

    def encode_iterable(self, iterable: Iterable[str]) -> Iterator[int]:
        """The ids of the joined strings, of which only little is held at a time."""
        gathered: list[str] = []
        size, enough = 0, ENCODE_CHARACTERS
        for piece in iterable:
            gathered.append(piece)
            size += len(piece)
            if size >= enough:
                text = "".join(gathered)
                cut = self._safe_cut(text)
                yield from self.encode(text[:cut])
                gathered = [text[cut:]]
                size = len(text) - cut
                enough = max(2 * size, ENCODE_CHARACTERS)
        yield from self.encode("".join(gathered))

    def decode(self, ids: Iterable[int]) -> str:
        return b"".join(self.vocab[token_id] for token_id in ids).decode("utf-8", "replace")

    def _safe_cut(self, text: str) -> int:
        """A place, perhaps 0, before which the ids are the same whatever comes after it."""
        found = BEFORE_SPACE.search(text, 0, max(len(text) - self._longest, 0))
        cut = found.start() if found else 0
        while cut:
            window = self._border.finditer(text, max(cut - self._longest, 0), cut + self._longest, overlapped=True)
            across = [match.start() for match in window if match.start() < cut < match.end()]
            if not across:
                break
            cut = min(across)
        return cut


def content_of(name: str) -> bytes:
    """Bytes of a name in the byte-level alphabet; special tokens are written as they are."""
    content = byte_level_bytes(name)
    return name.encode() if content is None else content
