"""`tokpack encode`: text files to Megatron indexed datasets, as Megatron's preprocess_data writes them.

One document is one sequence, or several where it is a list of strings; a document without tokens is a repeated document
index and no sequence. Text is encoded as it stands, by the tokenizer's own normalizer if it has one. Nothing is put
around documents unless told. Several fields of a document go to several datasets, PREFIX_<field>_document, in step with
each other.

Documents of text and image blocks are another matter, see `encode_images`.
"""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from tokpack_core.allocator import keep_freed_memory
from tokpack_core.commands.document_encoder import EncodeOptions, Encoder
from tokpack_core.commands.encode_on_engine import encode_on_engine
from tokpack_core.commands.encode_run import Run
from tokpack_core.commands.encode_units import UNIT_BYTES, UNIT_FILES
from tokpack_core.commands.finished_encode import finished_encode
from tokpack_core.commands.opened_tokenizer import OpenedTokenizer
from tokpack_core.commands.output import MANIFEST_ENDING, new_output
from tokpack_core.commands.progress import progress
from tokpack_core.commands.reading import Reading
from tokpack_core.commands.run_manifest import write_manifest
from tokpack_core.commands.token_files import TokenFiles
from tokpack_core.config import ReadConfig
from tokpack_core.config.vision import VisionConfig
from tokpack_core.corpus.files import shown
from tokpack_core.engine import Engine
from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import dtype_for
from tokpack_core.store.actions import json_digest
from tokpack_core.tokenizers.agreement.encoder_choice import encoder_choice

__all__ = ["EncodeOptions", "encode"]


def encode(
    opened: OpenedTokenizer,
    reading: Reading,
    output: Path,
    options: EncodeOptions,
    quiet: bool,
    vision: VisionConfig | None = None,
    cluster: Engine | None = None,
) -> dict[str, Any]:
    """Writes OUTPUT.bin, .idx and .manifest.json, or OUTPUT_<key>_document.bin and .idx for each of `json_keys`.

    Documents are encoded in threads of this process, or in units on a `cluster`. Returns the manifest.

    Raises:
        InputError: text or tokenizer cannot be used, there is no token at all, or an output exists.
    """
    if (vision is None) != (reading.options.content_field is None):
        raise InputError(
            "documents with images need both: --content-field names their blocks, and --vision says how many tokens an "
            "image becomes"
        )
    if options.json_keys and reading.options.text_field != ReadConfig().text_field:
        raise InputError("--json-keys names the fields to encode: leave out --text-field")
    if vision is not None:
        # Loads kernels, which documents of text have no use for.
        from tokpack_core.commands.encode_images import encode_images

        options.require_plain()
        if cluster is not None:
            raise InputError("--engine ray is for documents of text: leave it out, or --vision")
        return encode_images(opened, reading, output, options.append_eod, quiet, vision)
    if options.by_language and reading.options.lang_field is None and reading.lang is None:
        raise InputError(
            "--by-language needs the language of each document: name its field with --lang-field, or --lang"
        )
    fields = options.json_keys or (reading.options.text_field,)
    stems = [f"_{name}_document" for name in options.json_keys] or [""]
    endings = [*(f"{stem}{ending}" for stem in stems for ending in (".bin", ".idx")), MANIFEST_ENDING]
    encoder = Encoder(opened, options)
    vocab_size = encoder.vocab_size
    dtype = dtype_for(vocab_size)
    parameters = options.parameters() | reading.parameters()
    if options.resume and (manifest := finished_encode(output, opened, reading, parameters)):
        return manifest
    keep_freed_memory()
    with new_output(output, endings, options.resume) as draft:
        prefixes = [draft.with_name(f"{draft.name}{stem}") for stem in stems]
        job = job_digest(opened, reading, parameters, cluster is not None)
        files = TokenFiles(prefixes, dtype, job, hashed=cluster is None)
        run = Run(reading, fields, files, options)
        try:
            if cluster is not None:
                # Stdout is for the result: Ray, for one, prints there that a node was lost.
                with redirect_stdout(sys.stderr):
                    encode_on_engine(run, opened, cluster, quiet)
            else:
                with progress("encoding", reading.bytes * len(fields), "B", quiet) as on_done:
                    run.encode(encoder, on_done)
            run.check()
            files.finish()
        finally:
            files.close()
        by_field = [
            {"documents": counts.documents, "empty_documents": counts.empty_documents}
            | {"sequences": counts.sequences, "tokens": counts.tokens, "reading": problems.to_json()}
            | ({"documents_by_whole": counts.documents_by_whole} if options.by_language else {})
            for counts, problems in zip(files.state.counts, run.problems, strict=True)
        ]
        warnings = files.state.encoder_warnings or list(encoder_choice(opened.tokenizer).warnings)
        shared = {"dtype": dtype.name, "vocab_size": vocab_size, "eod": encoder.eod}
        shared |= {"encoder_warnings": warnings} if warnings else {}
        counts = shared | ({"fields": dict(zip(fields, by_field, strict=True))} if options.json_keys else by_field[0])
        hashed = files.hashed() if cluster is None else {}
        return write_manifest(draft, "encode", parameters, reading.inputs, counts, opened.as_json(), hashed)


def job_digest(opened: OpenedTokenizer, reading: Reading, parameters: dict[str, Any], in_units: bool) -> str:
    """Names everything that shapes the output, and how it is cut; files by what a stat tells of them."""
    files = [[shown(os.path.abspath(file.path)), file.fingerprint] for file in reading.files]
    units = [UNIT_BYTES, UNIT_FILES] if in_units else []
    return json_digest([opened.digest, opened.eod, parameters, reading.options.max_document_bytes, files, *units])
