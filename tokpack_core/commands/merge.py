"""`tokpack merge`: several prefixes to one, in the natural order of their names (shard_2 before shard_10)."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tokpack_core.commands.images import summed_vision
from tokpack_core.commands.output import MANIFEST_ENDING, new_output
from tokpack_core.commands.progress import progress
from tokpack_core.commands.run_manifest import describe_file, manifest_of, write_manifest
from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import bin_path, idx_path
from tokpack_core.megatron.merge import Shard, merge, natural_order, open_shards

ENDINGS = (".bin", ".idx", MANIFEST_ENDING)


def merge_prefixes(output: Path, named: Sequence[Path], quiet: bool) -> dict[str, Any]:
    """Writes OUTPUT.bin, .idx and .manifest.json; returns the manifest.

    Raises:
        InputError: nothing to merge, prefixes that are damaged or do not go together, or an output exists.
    """
    with new_output(output, ENDINGS) as draft:
        shards = open_shards(sorted(dict.fromkeys(find_prefixes(named)), key=natural_order))
        tokenizer = common_tokenizer(shards)
        digests: defaultdict[Path, hashlib._Hash] = defaultdict(hashlib.sha256)
        done = 0
        with progress("merging", sum(shard.bytes for shard in shards), "B", quiet) as on_done:

            def copied(path: Path, block: bytes) -> None:
                nonlocal done
                digests[path].update(block)
                done += len(block)
                on_done(done)

            merge(shards, draft, copied)
        counts = {
            "prefixes": len(shards),
            "documents": sum(shard.documents for shard in shards),
            "sequences": sum(shard.sequences for shard in shards),
            "tokens": sum(shard.bytes for shard in shards) // shards[0].dtype.itemsize,
            "dtype": shards[0].dtype.name,
            **common_counts(shards),
        }
        inputs = [entry for shard in shards for entry in described(shard, digests[bin_path(shard.prefix)].hexdigest())]
        return write_manifest(draft, "merge", {}, inputs, counts, tokenizer)


def find_prefixes(named: Sequence[Path]) -> Iterator[Path]:
    """Prefixes by name, by one of their files, or all that a folder holds."""
    for path in named:
        if path.is_dir():
            found = [file.with_suffix("") for file in path.glob("*.idx")]
            if not found:
                raise InputError(f"{path}: there is no .idx file in this folder; name prefixes of .bin/.idx pairs")
            yield from found
        elif path.name.endswith((".bin", ".idx")) and not idx_path(path).exists():
            yield path.with_suffix("")
        else:
            yield path


def described(shard: Shard, sha256: str) -> list[dict[str, Any]]:
    tokens = bin_path(shard.prefix)
    return [
        {"path": str(tokens.absolute()), "size": shard.bytes, "sha256": sha256},
        describe_file(idx_path(shard.prefix)),
    ]


def common_counts(shards: Sequence[Shard]) -> dict[str, Any]:
    """What the manifests of all prefixes say that `verify` and `pack` go by: `eod` if it is one, `vision` summed."""
    manifests = [manifest_of(bin_path(shard.prefix)) for shard in shards]
    told = [manifest.content["counts"] for manifest in manifests if manifest]
    if len(told) < len(shards):
        return {}
    ends = {counts.get("eod") for counts in told}
    vision = summed_vision([counts["vision"] for counts in told if counts.get("vision")])
    complete = vision is not None and all(counts.get("vision") for counts in told)
    return ({"eod": ends.pop()} if len(ends) == 1 else {}) | ({"vision": vision} if complete else {})


def common_tokenizer(shards: Sequence[Shard]) -> dict[str, Any] | None:
    """The tokenizer that the manifests of all prefixes name, or None if one names none.

    Raises:
        InputError: they name different ones.
    """
    named: dict[str, tuple[Path, dict[str, Any]]] = {}
    complete = True
    for shard in shards:
        manifest = manifest_of(bin_path(shard.prefix))
        tokenizer = manifest.content["tokenizer"] if manifest else None
        if tokenizer is None:
            complete = False
        else:
            named.setdefault(tokenizer["digest"], (shard.prefix, tokenizer))
    if len(named) > 1:
        (one, _), (other, _), *_ = named.values()
        raise InputError(f"{one} and {other} were encoded with different tokenizers: encode both with the same one")
    return next(iter(named.values()))[1] if named and complete else None
