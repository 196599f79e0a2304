"""Documents of text and image blocks to Megatron's multimodal files.

Each run of text and each image is a sequence, the image a run of the placeholder as long as the vision scheme says, and
modes say which is which.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from tokpack_core.commands.opened_tokenizer import OpenedTokenizer
from tokpack_core.commands.output import MANIFEST_ENDING, new_output
from tokpack_core.commands.progress import OnDone, progress
from tokpack_core.commands.reading import Reading
from tokpack_core.commands.run_manifest import write_manifest
from tokpack_core.config.vision import VisionConfig
from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import dtype_for
from tokpack_core.megatron.shards import ShardWriter
from tokpack_core.packing.image_spans import document_runs
from tokpack_core.tokenizers.framing import framed
from tokpack_core.tokenizers.huggingface.interleaved import ImageCounts, bounded_batches, encode_interleaved
from tokpack_core.vision.schemes import warnings

ENDINGS = (".bin", ".idx", MANIFEST_ENDING)


def encode_images(
    opened: OpenedTokenizer, reading: Reading, output: Path, append_eod: bool, quiet: bool, vision: VisionConfig
) -> dict[str, Any]:
    """Writes OUTPUT.bin, .idx and .manifest.json; returns the manifest.

    Raises:
        InputError: text or tokenizer cannot be used, there is no token at all, or an output exists.
    """
    placeholder = opened.require_image()
    tokenizer = opened.tokenizer
    eod = opened.require_eod("say which one it is with --eod, or leave out --append-eod") if append_eod else None
    dtype = dtype_for(tokenizer.vocab_size)
    tokens = empty = 0
    images = ImageCounts()
    with new_output(output, ENDINGS) as draft:
        with (
            progress("encoding", reading.bytes, "B", quiet) as on_done,
            ShardWriter(draft, dtype, tokenizer.vocab_size) as shard,
        ):
            for batch in bounded_batches(sourced_batches(reading, on_done), vision):
                encoded, spans, found = encode_interleaved(tokenizer, batch, vision, placeholder)
                images += found
                if eod is not None:
                    encoded = framed(encoded, encoded.lengths > 0, None, eod)
                shard.append(encoded, document_runs(encoded.lengths, spans.as_spans()))
                tokens += encoded.ids.size
                empty += int((encoded.lengths == 0).sum())
        if tokens == 0:
            raise InputError(f"{reading.files[0].shown}: every document is empty, there is no token to write")
        counts = {
            "documents": shard.documents,
            "empty_documents": empty,
            "tokens": tokens,
            "dtype": dtype.name,
            "vocab_size": tokenizer.vocab_size,
            "eod": eod,
            "reading": reading.problems.to_json(),
            "vision": {"scheme": vision.scheme, **images.as_dict(), "warnings": warnings(vision)},
        }
        parameters = {"append_eod": append_eod} | reading.parameters() | {"vision": vision.parameters()}
        return write_manifest(draft, "encode", parameters, reading.inputs, counts, opened.as_json())


def sourced_batches(reading: Reading, on_done: OnDone) -> Iterator[pa.RecordBatch]:
    """The documents with their file as `source`, which messages name."""
    for batch in reading.batches(on_done):
        yield batch.append_column("source", pa.repeat(reading.inputs[-1]["path"], len(batch)))
