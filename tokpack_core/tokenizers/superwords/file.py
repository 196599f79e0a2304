"""`tokenizer.tokpack`: the file of models that no stock format holds exactly.

One JSON object, UTF-8. Tokens are written in the byte-level alphabet (see `token_bytes`) and named by their place:

  format      "tokpack superwords"
  version     1
  splits      regexes of the pretokenizer, each an isolated split of what those before left
  mergeable   a regex: a word that holds a match may be part of a superword
  letters     a regex of which every match of a whole word may be so too, or null
  special     the special tokens, ids from 0, as they are written
  tokens      all others, with the ids after them
  deleted     what merges made and deletions took from the vocabulary, in numbers after the ids
  words       [left, right, token]: word merges in their order, by id; [token, [part, …]]: a deletion, which splits the
              token from here on
  superwords  the same for what is merged of whole neighbours, after all word merges

A list of merges without deletions is applied by rank: the first merge of the list that is possible comes first. With
deletions it is gone through once, from the first entry to the last.

Text is brought into the unicode form that `tokenizer_config.json` names, split, and its bytes are merged: within words
by `words`, the first merge of the list first; then words that have become one token and may be part of a superword, by
`superwords`. That gives the ids that all merges in one order give.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokpack_core.errors import InputError
from tokpack_core.tokenizers.byteification.token_bytes import byte_level_bytes, byte_level_name

FILE_NAME = "tokenizer.tokpack"
FORMAT, VERSION = "tokpack superwords", 1


@dataclass(frozen=True)
class SuperwordModel:
    """See the format; merges are int32 [merges, 3]."""

    splits: tuple[str, ...]
    mergeable: str
    letters: str | None
    special: tuple[str, ...]
    tokens: list[bytes]
    words: npt.NDArray[np.int32]
    """A deletion is token, -1, k"""
    superwords: npt.NDArray[np.int32]
    deleted: tuple[bytes, ...] = ()
    parts: tuple[tuple[int, ...], ...] = ()
    """[deletions]: what each splits its token into"""

    def contents(self) -> dict[int, bytes]:
        """The bytes of the tokens that are not special, by id."""
        return dict(enumerate(self.tokens, len(self.special)))


def write_model(path: Path, model: SuperwordModel) -> None:
    content = {
        "format": FORMAT,
        "version": VERSION,
        "splits": model.splits,
        "mergeable": model.mergeable,
        "letters": model.letters,
        "special": model.special,
        "tokens": [byte_level_name(token) for token in model.tokens],
        "deleted": [byte_level_name(token) for token in model.deleted],
        "words": [
            [left, right, made] if right >= 0 else [left, list(model.parts[made])]
            for left, right, made in model.words.tolist()
        ],
        "superwords": model.superwords.tolist(),
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in content.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read_model(path: Path) -> SuperwordModel:
    """Raises InputError for a file that is damaged or of another format."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}): restore the file or train anew") from None
    if not isinstance(content, dict) or (content.get("format"), content.get("version")) != (FORMAT, VERSION):
        raise InputError(f"{path} is no model of format {FORMAT!r} {VERSION}: open it with the version that saved it")
    try:
        return checked(content)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({error!r}): restore the file or train anew") from None


def checked(content: dict[str, Any]) -> SuperwordModel:
    tokens = [byte_level_bytes(name) for name in content["tokens"]]
    known = [token for token in tokens if token]
    special = tuple(content["special"])
    if len(known) < len(tokens) or len({token for token in known if len(token) == 1}) < 256:
        raise ValueError("a token is not of the byte-level alphabet, or a byte has none")
    deleted = tuple(byte_level_bytes(name) or b"" for name in content["deleted"])
    spelled = dict(enumerate([*known, *deleted], len(special)))
    words, parts = events_of(content["words"], spelled)
    superwords, _ = events_of(content["superwords"], dict(enumerate(known, len(special))))
    mergeable, letters = content["mergeable"], content["letters"]
    return SuperwordModel(
        tuple(content["splits"]), mergeable, letters, special, known, words, superwords, deleted, parts
    )


def events_of(
    entries: list[list[Any]], spelled: dict[int, bytes]
) -> tuple[npt.NDArray[np.int32], tuple[tuple[int, ...], ...]]:
    """Merges and deletions as they stand in a file; raises KeyError or ValueError for one that cannot be."""
    rows: list[list[int]] = []
    parts: list[tuple[int, ...]] = []
    for entry in entries:
        whole, sides = (entry[2], entry[:2]) if len(entry) == 3 else (entry[0], entry[1])
        if b"".join(spelled[side] for side in sides) != spelled[whole]:
            raise ValueError(f"{sides} do not spell {whole}")
        if len(entry) == 3:
            rows.append(entry)
        else:
            rows.append([whole, -1, len(parts)])
            parts.append(tuple(sides))
    return np.array(rows, np.int32).reshape(-1, 3), tuple(parts)
