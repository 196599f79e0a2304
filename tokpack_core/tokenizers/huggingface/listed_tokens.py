"""Added tokens that stand beside a tokenizer.json and not in it: transformers add them when they open the folder.

    tokenizer_config.json       added_tokens_decoder: object of id → token; named tokens such as `eos_token`;
                                additional_special_tokens or extra_special_tokens: a list
    special_tokens_map.json,    the same in older folders, read where there is no added_tokens_decoder: named tokens;
    added_tokens.json           object of token → id

They are added in the order of their ids, then named ones, then the others of the list. A token that the vocabulary has
keeps its id and gets the flags that are listed; a named one is special. Any other gets the next free id, whatever is
listed. That is what `PreTrainedTokenizerFast` of transformers 5 does, and so do we; where an id is another than the
listed one, which a model may have been trained with, a warning says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import AddedToken
from tokenizers import Tokenizer as Engine

from tokpack_core.errors import InputError
from tokpack_core.tokenizers.metadata import (
    FILE_NAME,
    LISTED,
    OLDER_IDS,
    config_files,
    published_config,
    read_object,
)

NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


def add_listed(engine: Engine, folder: Path) -> tuple[str, ...]:
    """Adds what the files of a folder list. Returns a sentence if ids are other than listed.

    Raises InputError for a file that is damaged, or a token that would share its id with another.
    """
    try:
        listed, named, others = listed_tokens(engine, folder)
        new = [token for _, token in sorted(listed.items())]
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        names = " or ".join(path.name for path in config_files(folder))
        raise InputError(f"{folder}: {names} lists a token that cannot be read ({error}): restore the file") from None
    contents = {token.content for token in (*engine.get_added_tokens_decoder().values(), *new)}
    new += [token for token in (*named, *others) if token.content not in contents]
    of_names = {token.content for token in named}
    for token in new:
        token.special = token.special or token.content in of_names
    absent = [token.content for token in new if engine.token_to_id(token.content) is None]
    # A copy of a large vocabulary takes long.
    taken = set(engine.get_vocab().values()) if absent else set()
    engine.add_tokens(new)
    for content in absent:
        if (found := engine.token_to_id(content)) in taken:
            raise InputError(
                f"{folder}: the ids of its tokenizer.json have holes, so that {content!r}, which {FILE_NAME} lists, "
                f"would share id {found}: give a tokenizer.json that holds it"
            )
    return other_ids(engine, {token.content: number for number, token in listed.items()})


def other_ids(engine: Engine, listed: dict[str, int]) -> tuple[str, ...]:
    moved = [(content, number) for content, number in listed.items() if engine.token_to_id(content) != number]
    if not moved:
        return ()
    content, number = moved[0]
    more = f", and {len(moved) - 1} more with other ids than theirs" if len(moved) > 1 else ""
    found = engine.token_to_id(content)
    return (
        f"{FILE_NAME} lists {content!r} as {number}{more}: tokenizer.json gives it id {found}, here and "
        "in transformers; for a model that was trained with the listed ids give a tokenizer.json that holds them",
    )


def listed_tokens(engine: Engine, folder: Path) -> tuple[dict[int, AddedToken], list[AddedToken], list[AddedToken]]:
    """Those that are listed with an id, those that have a name, and all others."""
    config = published_config(folder)
    if LISTED in config:
        listed = {int(number): as_token(dict(token)) for number, token in config[LISTED].items()}
        return listed, named_tokens(config), other_tokens(config)
    named, others = named_tokens(config), other_tokens(config)
    of_all = named_tokens({key: value for key, value in config.items() if key in NAMED})
    # In transformers a list beside tokens with names of their own is read after these.
    beside = isinstance(config.get("extra_special_tokens"), dict) and bool(config["extra_special_tokens"])
    special = {token.content for token in (*of_all, *([] if beside else others))}
    listed = {
        number: AddedToken(content, normalized=content not in special, special=content in special)
        for content, number in read_object(folder / OLDER_IDS).items()
    }
    return listed | engine.get_added_tokens_decoder(), named, others


def named_tokens(config: dict[str, Any]) -> list[AddedToken]:
    """`eos_token` and its like, first those that every tokenizer may have."""
    extra = config.get("extra_special_tokens")
    of_model = {key: value for key, value in config.items() if key.endswith("_token") and key not in NAMED}
    of_model |= extra if isinstance(extra, dict) else {}
    values = [*map(config.get, NAMED), *of_model.values()]
    return [as_token(value) for value in values if value and isinstance(value, str | dict)]


def other_tokens(config: dict[str, Any]) -> list[AddedToken]:
    extra = config.get("extra_special_tokens")
    found = extra if extra and not isinstance(extra, dict) else config.get("additional_special_tokens")
    return [as_token(value) for value in found or []]


def as_token(value: str | dict[str, Any]) -> AddedToken:
    if isinstance(value, str):
        return AddedToken(value, special=True)
    return AddedToken(value["content"], **{flag: value[flag] for flag in FLAGS if flag in value})
