"""`tokenizer_config.json`: what a tokenizer's own file does not say.

It is the file of that name in the Hugging Face convention (`eos_token` for eod, `pad_token`, `bos_token`,
`unk_token`, `image_token`), so `transformers.AutoTokenizer` reads it, with one entry of ours, `tokpack`: family,
unicode form, special tokens by role with their ids, the settings that shaped the tokenizer, and the figures of its
training. It holds no path, no time and no version, so equal tokenizers have equal files.

A tokenizer of languages has `lang_to_ids.json` beside it: an object of language → its ids, ascending.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import numpy.typing as npt

from tokpack_core.config import UnicodeForm
from tokpack_core.errors import InputError

FILE_NAME = "tokenizer_config.json"
LANGUAGES_FILE_NAME = "lang_to_ids.json"
LISTED = "added_tokens_decoder"
"""What another program's tokenizer_config.json calls its tokens by id; before there was that, two files were beside."""
OLDER_NAMES = "special_tokens_map.json"
OLDER_IDS = "added_tokens.json"
ROLE_KEYS = {
    "eod": "eos_token",
    "pad": "pad_token",
    "bos": "bos_token",
    "unk": "unk_token",
    "image": "image_token",
}


@dataclass(frozen=True)
class Metadata:
    family: str
    unicode: UnicodeForm
    special_tokens: Mapping[str, str]
    """role → string"""
    settings: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    ids: Mapping[str, int] = field(default_factory=dict)
    """role → id as read from a saved folder, to hold against the tokenizer's file"""
    languages: Mapping[str, npt.NDArray[np.int32]] = field(default_factory=dict)
    """language → the ids of its sub-tokenizer, ascending, special tokens and bytes included; empty if it has none"""
    warnings: tuple[str, ...] = ()
    """Sentences on what a publisher's files say and the tokenizer does not follow; they are not saved."""


def write_metadata(folder: Path, metadata: Metadata, ids: Mapping[str, int], tokenizer_class: str | None) -> None:
    """`ids`: role → id. `tokenizer_class`: the class of transformers that opens the folder, if one does."""
    content: dict[str, Any] = {ROLE_KEYS[role]: text for role, text in metadata.special_tokens.items()}
    if tokenizer_class is not None:
        content |= {"tokenizer_class": tokenizer_class, "clean_up_tokenization_spaces": False}
    content["tokpack"] = {
        "family": metadata.family,
        "unicode": metadata.unicode,
        "special_tokens": {role: {"token": text, "id": ids[role]} for role, text in metadata.special_tokens.items()},
        "settings": dict(metadata.settings),
        "training": dict(metadata.training),
    }
    text = json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True)
    (folder / FILE_NAME).write_text(text + "\n", encoding="utf-8")
    if metadata.languages:
        by_language = {language: ids.tolist() for language, ids in metadata.languages.items()}
        text = json.dumps(by_language, ensure_ascii=False, separators=(",", ":"))
        (folder / LANGUAGES_FILE_NAME).write_text(text + "\n", encoding="utf-8")


def read_metadata(folder: Path) -> Metadata | None:
    """What we wrote when we saved the folder; None if another program did. Raises InputError for a damaged file."""
    content = read_config(folder).get("tokpack")
    if content is None:
        return None
    try:
        special_tokens = {role: entry["token"] for role, entry in content["special_tokens"].items()}
        unicode = content["unicode"]
        if unicode not in get_args(UnicodeForm) or not set(special_tokens) <= set(ROLE_KEYS):
            raise ValueError(f"unicode form {unicode!r} or a role of {sorted(special_tokens)} is unknown")
        family, settings, training = content["family"], content["settings"], content["training"]
        ids = {role: entry["id"] for role, entry in content["special_tokens"].items()}
        languages = read_languages(folder)
        return Metadata(family, cast(UnicodeForm, unicode), special_tokens, settings, training, ids, languages)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(
            f"{folder / FILE_NAME}: the entry `tokpack` is damaged ({error}): restore the file or train anew"
        ) from None


def read_languages(folder: Path) -> dict[str, npt.NDArray[np.int32]]:
    """What `lang_to_ids.json` holds, if there is one. Raises InputError for a damaged file."""
    path = folder / LANGUAGES_FILE_NAME
    try:
        content = json.loads(path.read_bytes())
        languages = {language: np.array(ids, np.int32) for language, ids in content.items()}
        if not all(ids.ndim == 1 and ids.size and (np.diff(ids, prepend=-1) > 0).all() for ids in languages.values()):
            raise ValueError("ids are not ascending")
        return languages
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise InputError(
            f"{path} is not an object of language to ascending ids ({error}): restore the file or train anew"
        ) from None


def kept_languages(
    languages: Mapping[str, npt.NDArray[np.int32]], kept: npt.NDArray[np.bool_]
) -> dict[str, npt.NDArray[np.int32]]:
    """The same when only some entries stay (bool [vocab_size]) and ids close up."""
    new_ids = (np.cumsum(kept) - 1).astype(np.int32)
    return {language: new_ids[ids[kept[ids]]] for language, ids in languages.items()}


def published_roles(folder: Path) -> dict[str, str]:
    """role → string as another program's `tokenizer_config.json` names them; nothing is guessed from names."""
    content = published_config(folder)
    named = {role: content.get(key) for role, key in ROLE_KEYS.items()}
    strings = {role: value.get("content") if isinstance(value, dict) else value for role, value in named.items()}
    return {role: text for role, text in strings.items() if isinstance(text, str) and text}


def published_config(folder: Path) -> dict[str, Any]:
    """Another program's `tokenizer_config.json`, with what older folders have in a file of its own."""
    content = read_config(folder)
    return content if LISTED in content else content | read_object(folder / OLDER_NAMES)


def config_files(folder: Path) -> list[Path]:
    """The files that `published_config` and `listed_tokens` read, as far as there are any."""
    older = [] if LISTED in read_config(folder) else [OLDER_NAMES, OLDER_IDS]
    return [path for path in (folder / name for name in (FILE_NAME, *older)) if path.is_file()]


def left_out(file: Path, holds: Callable[[str], bool]) -> tuple[str, ...]:
    """A sentence if tokens are listed beside a tokenizer's file, to which none can be added, that it does not hold."""
    content = published_config(file.parent)
    entries = content.get(LISTED)
    if isinstance(entries, dict):
        listed = [entry.get("content") for entry in entries.values() if isinstance(entry, dict)]
    else:
        listed = list(read_object(file.parent / OLDER_IDS))
    missing = [text for text in listed if isinstance(text, str) and not holds(text)]
    if not missing:
        return ()
    more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
    return (
        f"{file.name} does not hold {missing[0]!r}{more}, which the files beside it list: it has no id here; give "
        "the tokenizer.json of the same tokenizer",
    )


def read_config(folder: Path) -> dict[str, Any]:
    return read_object(folder / FILE_NAME)


def read_object(path: Path) -> dict[str, Any]:
    """The content of a JSON file, empty if there is none. Raises InputError for one that holds no object."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}): restore the file or remove it") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} is not a JSON object: restore the file or remove it")
    return content
