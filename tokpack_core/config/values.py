"""What configuration values share: sizes in bytes, shares, owners, and a model that knows its keys."""

from __future__ import annotations

import math
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

UnicodeForm = Literal["nfc", "nfkc", "none"]
OnError = Literal["error", "skip", "replace"]
BYTE_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
BYTE_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def parse_bytes(value: object) -> object:
    """`2GB`, `512 MiB` or a plain number of bytes, as an int; anything else is left for the type check to refuse."""
    if not isinstance(value, str):
        return value
    text = value.strip().upper()
    digits = text.rstrip("BKMGTI ")
    unit = text[len(digits) :].strip()
    try:
        return int(float(digits) * BYTE_UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        raise ValueError(f"{value!r} is not a size: write bytes as 2GB, 512MiB or 1000000") from None


WrittenBytes = int | Annotated[str, Field(pattern=r"^\s*[0-9.]+ *([KMGT]i?)?B?\s*$", examples=["2GB", "512MiB"])]
"""What an editor lets a size be; `parse_bytes` judges it."""
Bytes = Annotated[int, BeforeValidator(parse_bytes, json_schema_input_type=WrittenBytes), Field(ge=1, lt=2**63)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]
SourcePath = Annotated[str, Field(min_length=1)]


def check_shares(shares: dict[str, float]) -> dict[str, float]:
    bad = {name: share for name, share in shares.items() if not (math.isfinite(share) and share > 0)}
    if bad:
        raise ValueError(f"shares must be positive numbers, not {bad}")
    return shares


def check_owner(owner: str) -> str:
    if not OWNER.fullmatch(owner):
        raise ValueError(f"{owner!r} is no owner: write an e-mail address, or team:name")
    return owner


OWNER = re.compile(r"team:[A-Za-z0-9_]+|[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}")
Owners = tuple[Annotated[str, AfterValidator(check_owner)], ...]
Shares = Annotated[dict[str, float], AfterValidator(check_shares), Field(min_length=1)]


class Model(BaseModel):
    """Unknown keys are errors, values keep their type, instances are frozen.

    Most processes need few of the models, and building validators takes time: each is built when it is first used.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=False,
        allow_inf_nan=False,
        defer_build=True,
    )


NO_TEXT = "holds half of a surrogate pair, which is no character: write characters in UTF-8"


def is_text(value: str) -> bool:
    """Not where it holds half a surrogate pair, as `\\ud800` in YAML or an argument that is no UTF-8 gives."""
    return not any("\ud800" <= character <= "\udfff" for character in value)
