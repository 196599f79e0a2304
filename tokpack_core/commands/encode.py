"""`tokpack encode`: text files to one Megatron indexed dataset, as Megatron's preprocess_data writes it.

One document is one sequence; a document without tokens is a repeated document index and no sequence. Text is encoded
as it stands, by the tokenizer's own normalizer if it has one. Nothing is put between documents unless `append_eod`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokpack_core.commands.opened_tokenizer import OpenedTokenizer
from tokpack_core.commands.output import MANIFEST_ENDING, new_output
from tokpack_core.commands.progress import progress
from tokpack_core.commands.reading import Reading
from tokpack_core.commands.run_manifest import write_manifest
from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import dtype_for
from tokpack_core.megatron.shards import ShardWriter
from tokpack_core.tokenizers.framing import framed

ENDINGS = (".bin", ".idx", MANIFEST_ENDING)


def encode(opened: OpenedTokenizer, reading: Reading, output: Path, append_eod: bool, quiet: bool) -> dict[str, Any]:
    """Writes OUTPUT.bin, .idx and .manifest.json; returns the manifest.

    Raises:
        InputError: text or tokenizer cannot be used, there is no token at all, or an output exists.
    """
    tokenizer = opened.tokenizer
    eod = opened.require_eod("say which one it is with --eod, or leave out --append-eod") if append_eod else None
    dtype = dtype_for(tokenizer.vocab_size)
    tokens = empty = 0
    with new_output(output, ENDINGS) as draft:
        with (
            progress("encoding", reading.bytes, "B", quiet) as on_done,
            ShardWriter(draft, dtype, tokenizer.vocab_size) as shard,
        ):
            for batch in reading.batches(on_done):
                encoded = tokenizer.encode(batch["text"])
                if eod is not None:
                    encoded = framed(encoded, encoded.lengths > 0, None, eod)
                shard.append(encoded)
                tokens += encoded.ids.size
                empty += int((encoded.lengths == 0).sum())
        if tokens == 0:
            raise InputError(f"{reading.files[0].path}: every document is empty, there is no token to write")
        counts = {
            "documents": shard.documents,
            "empty_documents": empty,
            "tokens": tokens,
            "dtype": dtype.name,
            "vocab_size": tokenizer.vocab_size,
            "eod": eod,
            "reading": reading.problems.to_json(),
        }
        parameters = {"append_eod": append_eod} | reading.parameters()
        return write_manifest(draft, "encode", parameters, reading.inputs, counts, opened.as_json())
