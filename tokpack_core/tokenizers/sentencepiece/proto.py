"""The few fields of a SentencePiece model file that its library does not show, read from the protobuf wire format.

A message is a row of fields: a varint key (number · 8 + wire type), then a varint (type 0), 8 bytes (1), a length and
as many bytes (2), or 4 bytes (5). In sentencepiece_model.proto, ModelProto has pieces = 1, trainer_spec = 2 and
normalizer_spec = 3; SentencePiece has piece = 1, score = 2 (a float) and type = 3 (NORMAL is 1, also if absent;
UNKNOWN is 2; CONTROL is 3; USER_DEFINED is 4; UNUSED, which text never matches, is 5; BYTE is 6); TrainerSpec has
model_type = 3 (UNIGRAM is 1, also if absent; BPE is 2, WORD 3, CHAR 4), input_format = 7,
treat_whitespace_as_suffix = 24 and seed_sentencepieces_file = 54, a path; NormalizerSpec has precompiled_charsmap = 2
(the rules), add_dummy_prefix = 3, remove_extra_whitespaces = 4, escape_whitespaces = 5 (these three true if absent) and
normalization_rule_tsv = 6, which holds the path of the rule file used in training.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

PIECES = 1
PIECE_STRING, PIECE_SCORE, PIECE_TYPE = 1, 2, 3
NORMAL = b"\1"
UNKNOWN = b"\2"
CONTROL = b"\3"
USER_DEFINED = b"\4"
UNUSED = b"\5"
BYTE = b"\6"
TRAINER_SPEC = 2
MODEL_TYPE = 3
UNIGRAM = b"\1"
BPE = b"\2"
CHARACTERS = b"\4"
NORMALIZER_SPEC = 3
SPACE_AS_SUFFIX = 24
RULES, ADD_DUMMY_PREFIX, REMOVE_EXTRA_SPACES, ESCAPE_SPACES = 2, 3, 4, 5
NEEDED_IN_TRAINING = {TRAINER_SPEC: (7, 54), NORMALIZER_SPEC: (6,)}
LENGTH_DELIMITED = 2
FIXED_32 = 5


@dataclass(frozen=True)
class Normalization:
    """What a model does to text before it is cut into pieces."""

    rules: bytes
    """The length of a double-array trie in 4 bytes, the trie, and what its keys are replaced by."""
    adds_dummy_prefix: bool
    removes_extra_spaces: bool
    escapes_spaces: bool
    space_as_suffix: bool


def normalization(model: bytes) -> Normalization:
    """Raises ValueError if the bytes are no protobuf message."""
    trainer: dict[int, bytes] = {}
    normalizer: dict[int, bytes] = {}
    for number, _, spec, _ in fields(model):
        if number == TRAINER_SPEC:
            trainer |= {number: value for number, _, value, _ in fields(spec)}
        elif number == NORMALIZER_SPEC:
            normalizer |= {number: value for number, _, value, _ in fields(spec)}
    return Normalization(
        rules=normalizer.get(RULES, b""),
        adds_dummy_prefix=normalizer.get(ADD_DUMMY_PREFIX) != b"\0",
        removes_extra_spaces=normalizer.get(REMOVE_EXTRA_SPACES) != b"\0",
        escapes_spaces=normalizer.get(ESCAPE_SPACES) != b"\0",
        space_as_suffix=trainer.get(SPACE_AS_SUFFIX, b"\0") != b"\0",
    )


def adds_dummy_prefix(model: bytes) -> bool:
    """Whether the model puts a space before each text. Raises ValueError if the bytes are no protobuf message."""
    return normalization(model).adds_dummy_prefix


def is_user_defined(model: bytes, piece: int) -> bool:
    """Whether the piece with this id is a user-defined symbol, which matches text before any other piece."""
    pieces = (value for number, _, value, _ in fields(model) if number == PIECES)
    content = next(islice(pieces, piece, None))
    return USER_DEFINED in [value for number, _, value, _ in fields(content) if number == PIECE_TYPE]


def as_published(model: bytes, stand_ins: dict[str, str]) -> bytes:
    """The model without what only its training needed: paths, the input's format, and stand-ins (string → character).

    Pieces hold their characters in the place of stand-ins.
    """
    parts = []
    for number, _, value, whole in fields(model):
        if number == PIECES:
            whole = message(PIECES, [with_characters(field, stand_ins) for field in fields(value)])
        elif number in NEEDED_IN_TRAINING:
            left_out = NEEDED_IN_TRAINING[number]
            whole = message(number, [field for inner, _, _, field in fields(value) if inner not in left_out])
        parts.append(whole)
    return b"".join(parts)


def with_characters(field: tuple[int, int, bytes, bytes], stand_ins: dict[str, str]) -> bytes:
    number, _, value, whole = field
    if number != PIECE_STRING:
        return whole
    text = value.decode()
    for stand_in, character in stand_ins.items():
        text = text.replace(stand_in, character)
    return message(PIECE_STRING, [text.encode()])


def message(number: int, parts: list[bytes]) -> bytes:
    """A length-delimited field."""
    content = b"".join(parts)
    return varint(number << 3 | LENGTH_DELIMITED) + varint(len(content)) + content


def pieces(model: bytes) -> list[tuple[str, float, int]]:
    """Text, score and type of each piece."""
    found = []
    for number, _, content, _ in fields(model):
        if number == PIECES:
            values = {number: value for number, _, value, _ in fields(content)}
            text = values.get(PIECE_STRING, b"")
            score = struct.unpack("<f", values[PIECE_SCORE])[0] if PIECE_SCORE in values else 0.0
            found.append((text.decode(), score, values.get(PIECE_TYPE, NORMAL)[0]))
    return found


def with_pieces(model: bytes, kept: Sequence[bool]) -> bytes:
    """The model with the pieces that are kept, in their order."""
    parts = []
    piece = 0
    for number, _, _, whole in fields(model):
        if number == PIECES:
            piece += 1
            if not kept[piece - 1]:
                continue
        parts.append(whole)
    return b"".join(parts)


def with_new_pieces(model: bytes, pieces: Sequence[tuple[str, float, int]]) -> bytes:
    """The model with other pieces in the place of its own: text, score and type of each, as `pieces` gives them."""
    others = [whole for number, _, _, whole in fields(model) if number != PIECES]
    return b"".join([*(as_piece(*piece) for piece in pieces), *others])


def with_scores(model: bytes, change: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]) -> bytes:
    """The model with other scores of its ordinary pieces, of which `change` is given all."""
    texts, scores, kinds = zip(*pieces(model), strict=True)
    ordinary = np.array(kinds) == NORMAL[0]
    changed = np.array(scores, np.float64)
    changed[ordinary] = change(changed[ordinary])
    return with_new_pieces(model, list(zip(texts, changed.tolist(), kinds, strict=True)))


def with_equal_scores(model: bytes, score: float) -> bytes:
    """The model as a Unigram one in which every ordinary piece has the same score."""
    parts = []
    for number, _, spec, whole in fields(with_scores(model, lambda scores: np.full_like(scores, score))):
        if number == TRAINER_SPEC:
            others = [field for inner, _, _, field in fields(spec) if inner != MODEL_TYPE]
            whole = message(number, [*others, varint(MODEL_TYPE << 3) + UNIGRAM])
        parts.append(whole)
    return b"".join(parts)


def as_piece(text: str, score: float, kind: int) -> bytes:
    number = varint(PIECE_SCORE << 3 | FIXED_32) + struct.pack("<f", score)
    return message(PIECES, [message(PIECE_STRING, [text.encode()]), number, varint(PIECE_TYPE << 3) + varint(kind)])


def merges_pairs(model: bytes) -> bool:
    """Whether it is a BPE model."""
    return model_type(model) == BPE


def model_type(model: bytes) -> bytes:
    for number, _, spec, _ in fields(model):
        if number == TRAINER_SPEC:
            return {number: value for number, _, value, _ in fields(spec)}.get(MODEL_TYPE, UNIGRAM)
    return UNIGRAM


def fields(message: bytes) -> Iterator[tuple[int, int, bytes, bytes]]:
    """(number, wire type, value, the whole field) of each field; a varint's value is given in its encoded bytes."""
    position = 0
    while position < len(message):
        start = position
        key, position = read_varint(message, position)
        wire_type, value_start = key & 7, position
        if wire_type == 0:
            _, position = read_varint(message, position)
        elif wire_type == 1:
            position += 8
        elif wire_type == LENGTH_DELIMITED:
            length, value_start = read_varint(message, position)
            position = value_start + length
        elif wire_type == FIXED_32:
            position += 4
        else:
            raise ValueError(f"wire type {wire_type} at byte {start}")
        if position > len(message):
            raise ValueError(f"the field at byte {start} is cut")
        yield key >> 3, wire_type, message[value_start:position], message[start:position]


def read_varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(message):
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("the last field is cut")


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
