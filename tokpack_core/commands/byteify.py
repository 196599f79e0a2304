"""`tokpack byteify`: where the tokens of an indexed dataset stand in bytes, and the longest entry that ends at each.

Written are arrays that can be mapped, little-endian, in the order of PREFIX.idx's sequences:

    OUT.bytes.npy            u1 [bytes]            the text of all sequences, without special tokens
    OUT.token_ends.npy       b1 [bytes]            whether a token ends with the byte
    OUT.longest_suffix.npy   i4 [bytes]            the longest entry of the vocabulary that ends with the byte, or -1
    OUT.token_begins.npy     i8 [tokens + 1]       token t is bytes[token_begins[t] : token_begins[t + 1]]
    OUT.sequence_begins.npy  i8 [sequences + 1]    likewise for sequences
    OUT.manifest.json

Memory holds BATCH_TOKENS tokens, or one sequence that is longer, and the index.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from tokpack_core.commands.inspect_prefix import without_ending
from tokpack_core.commands.opened_tokenizer import OpenedTokenizer
from tokpack_core.commands.output import MANIFEST_ENDING, new_output
from tokpack_core.commands.progress import progress
from tokpack_core.commands.run_manifest import describe_file, write_manifest
from tokpack_core.commands.tokenizer_of_prefix import find_tokenizer
from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import bin_path, idx_path
from tokpack_core.megatron.indexed_reader import IndexedReader, release_pages
from tokpack_core.megatron.npy_stream import NpyStream
from tokpack_core.tokenizers.byteification.byte_map import ByteMapper
from tokpack_core.tokenizers.encoded import Encoded

BATCH_TOKENS = 2**20
ARRAYS = {
    "bytes": "<u1",
    "token_ends": "?",
    "longest_suffix": "<i4",
    "token_begins": "<i8",
    "sequence_begins": "<i8",
}
ENDINGS = (*(f".{name}.npy" for name in ARRAYS), MANIFEST_ENDING)


def byteify(prefix: Path, opened: OpenedTokenizer | None, output: Path, quiet: bool) -> dict[str, Any]:
    """Writes the arrays and OUTPUT.manifest.json, which is returned. `opened`: by default what made the prefix.

    Raises:
        InputError: the prefix or its tokenizer cannot be read, tokens do not spell their text, or an output exists.
    """
    prefix = without_ending(prefix)
    reader = IndexedReader(prefix)
    opened = opened or find_tokenizer(prefix)
    if opened is None:
        raise InputError(f"{prefix}: it is not known which tokenizer made it: name it with --tokenizer")
    mapper = ByteMapper(opened.tokenizer)
    sequences, tokens, size = len(reader), 0, 0
    with new_output(output, ENDINGS) as draft, ExitStack() as files:
        streams = {
            name: files.enter_context(NpyStream(draft.with_name(f"{draft.name}.{name}.npy"), dtype))
            for name, dtype in ARRAYS.items()
        }
        streams["sequence_begins"].add(np.zeros(1, np.int64))
        with progress("mapping", reader.tokens.size, "tokens", quiet) as on_done:
            for first, batch in batches(reader):
                try:
                    found = mapper.map(batch, first)
                except InputError as error:
                    raise InputError(f"{prefix}: {error}") from None
                streams["bytes"].add(found.text)
                streams["token_ends"].add(found.token_ends)
                streams["longest_suffix"].add(found.longest_suffix)
                streams["token_begins"].add(size + found.token_begins)
                streams["sequence_begins"].add(size + found.document_ends)
                tokens, size = tokens + batch.ids.size, size + found.text.size
                on_done(tokens)
                release_pages(reader.tokens)
        streams["token_begins"].add(np.array([size]))
        files.close()
        counts = {"sequences": sequences, "tokens": tokens, "bytes": size}
        inputs = [describe_file(path) for path in (bin_path(prefix), idx_path(prefix))]
        return write_manifest(draft, "byteify", {}, inputs, counts, opened.as_json())


def batches(reader: IndexedReader) -> Iterator[tuple[int, Encoded]]:
    """Number of the first sequence, and whole sequences of BATCH_TOKENS tokens at most, or one that is longer."""
    ends = np.cumsum(reader.index.sequence_lengths, dtype=np.int64)
    first = 0
    while first < ends.size:
        begin = int(ends[first - 1]) if first else 0
        stop = max(int(np.searchsorted(ends, begin + BATCH_TOKENS, side="right")), first + 1)
        ids = reader.tokens[begin : int(ends[stop - 1])].astype(np.int32)
        yield first, Encoded(ids, np.concatenate([np.zeros(1, np.int64), ends[first:stop] - begin]))
        first = stop
