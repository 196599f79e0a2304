"""A tokenizer's folder as `transformers.AutoTokenizer` opens it, compared in a process of its own.

transformers take 0.7 CPU-seconds and 70 MB to be imported (1.5 and 250 with torch, which a tokenizer does not need and
which the process leaves out), and neither may stay with the stage that publishes. The process reads what is expected as
an Arrow stream from its standard input (columns text, ids, restored; vocabulary size and special tokens in the schema's
metadata) and prints one JSON object: `version` and `difference`, or `unavailable`.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tokpack_core.tokenizers.agreement.readers import Expected, Reader, first_difference
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.metadata import ROLE_KEYS

OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1"}
ROLES = ("eod", "pad", "bos", "unk")
"""Those that AutoTokenizer has an attribute for."""


def compare_with_auto_tokenizer(folder: Path, expected: Expected) -> dict[str, Any]:
    """`compared`, with `transformers` (its version), `texts` and `difference` (None: none), or the `reason` if not.

    A folder that AutoTokenizer does not open is a difference; transformers that are not installed, or cannot be
    imported, are a reason.
    """
    ended = subprocess.run(
        [sys.executable, "-m", __name__, str(folder)],
        input=to_stream(expected),
        capture_output=True,
        env=os.environ | OFFLINE | same_modules(),
        check=False,
    )
    try:
        told = json.loads(ended.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        last = said[-1] if said else f"exit code {ended.returncode}"
        return {"compared": False, "reason": f"the process that compares ended without a result: {last}"}
    if "unavailable" in told:
        return {"compared": False, "reason": told["unavailable"]}
    agreed = {"transformers": told["version"], "texts": expected.ids.documents}
    return {"compared": True, **agreed, "difference": told["difference"]}


def same_modules() -> dict[str, str]:
    """The process imports what this one would, and nothing of the folder that it is started in."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"}


def to_stream(expected: Expected) -> bytes:
    lists = pa.LargeListArray.from_arrays(expected.ids.offsets, pa.array(expected.ids.ids))
    described = {"vocab_size": str(expected.vocab_size), "special": json.dumps(expected.special)}
    columns = {"text": expected.texts.cast(pa.large_string()), "ids": lists, "restored": expected.restored}
    table = pa.table(columns).replace_schema_metadata(described)
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


def from_stream(stream: bytes) -> Expected:
    table = pa.ipc.open_stream(stream).read_all().combine_chunks()
    described = table.schema.metadata
    special = {role: (text, number) for role, (text, number) in json.loads(described[b"special"]).items()}
    texts, lists, restored = (
        table[name].chunk(0) if table.num_rows else pa.array([], table[name].type) for name in table.column_names
    )
    offsets = lists.offsets.to_numpy() if table.num_rows else np.zeros(1, np.int64)
    ids = Encoded(lists.flatten().to_numpy().astype(np.int32), offsets)
    return Expected(int(described[b"vocab_size"]), special, texts, ids, restored)


def by_auto_tokenizer(folder: Path) -> Reader:
    """Raises what transformers raise for a folder that they do not open."""
    from transformers import AutoTokenizer

    auto: Any = AutoTokenizer.from_pretrained(folder)

    def encode(texts: list[str]) -> list[list[int]]:
        lists: list[list[int]] = auto(texts, add_special_tokens=False)["input_ids"] if texts else []
        return lists

    def decode(lists: list[list[int]]) -> list[str]:
        return [auto.decode(ids, skip_special_tokens=False) for ids in lists]

    def id_of_role(role: str) -> int | None:
        number: int | None = getattr(auto, f"{ROLE_KEYS[role]}_id") if role in ROLES else None
        return number

    return Reader(len(auto), auto.convert_tokens_to_ids, encode, decode, id_of_role)


def main(folder: Path) -> dict[str, Any]:
    """What the process prints."""
    sys.modules["torch"] = None  # type: ignore[assignment]  # reads as not installed
    expected = from_stream(sys.stdin.buffer.read())
    try:
        import transformers
    except Exception as error:  # whatever a broken installation raises
        missing = isinstance(error, ModuleNotFoundError) and error.name == "transformers"
        why = "is not installed" if missing else f"cannot be imported: {error}"
        return {"unavailable": f"transformers {why}"}
    try:
        difference = first_difference(by_auto_tokenizer(folder), expected)
    except Exception as error:  # as above
        difference = f"AutoTokenizer does not open it: {type(error).__name__}: {error}"
    return {"version": transformers.__version__, "difference": difference}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
