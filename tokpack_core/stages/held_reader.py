"""Reading a dataset of a store for training: held against garbage collection for as long as the reader is open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tokpack_core.errors import InputError
from tokpack_core.store import leases, objects
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import open_store
from tokpack_core.training.packed_dataset import PackedDataset


@contextmanager
def held_dataset(prefix: Path) -> Iterator[PackedDataset]:
    """A `PackedDataset` over a prefix of a store, which stays while this is open, and ends with this process.

    Raises:
        InputError: the prefix is in no store, where nothing has to be held: open a PackedDataset.
        StoreError: the object is gone, or the store cannot be written.
    """
    root = next((folder for folder in prefix.resolve().parents if (folder / "store.json").is_file()), None)
    if root is None:
        raise InputError(f"{prefix}: in no store; open it with PackedDataset, nothing has to be held")
    store = open_store(root)
    stage, digest, *_ = prefix.resolve().relative_to(store.objects).parts
    ref = ObjectRef(stage, digest)
    with leases.hold(store, [ref], f"reader of {prefix.name}"):
        yield PackedDataset(prefix, objects.read_manifest(store, ref).counts["eod"])
