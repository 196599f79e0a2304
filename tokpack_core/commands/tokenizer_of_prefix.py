"""The tokenizer that made a prefix, to decode it by: known from the store that it is in, or from its manifest."""

from __future__ import annotations

from pathlib import Path

from tokpack_core.commands.opened_tokenizer import OpenedTokenizer, open_tokenizer
from tokpack_core.commands.run_manifest import manifest_of
from tokpack_core.commands.store_access import graph_of, store_around
from tokpack_core.megatron.indexed_dataset import bin_path
from tokpack_core.stages import tokenizer as tokenizer_stage
from tokpack_core.store import objects
from tokpack_core.store.lineage import object_at
from tokpack_core.tokenizers import registry

ANY_REGEX = "gpt2"


def find_tokenizer(prefix: Path) -> OpenedTokenizer | None:
    """None if it is unknown, gone, or no longer what it was."""
    store = store_around(prefix)
    ref = object_at(store, prefix) if store else None
    if store and ref:
        graph = graph_of(store)
        waiting, seen = [ref], {ref}
        while waiting:
            ref = waiting.pop(0)
            if ref.stage == tokenizer_stage.STAGE and ref in graph.manifests:
                return open_tokenizer(objects.folder_of(store, ref))
            new = [source for source in graph.upstream.get(ref, []) if source not in seen]
            waiting += new
            seen.update(new)
        return None
    manifest = manifest_of(bin_path(prefix))
    described = manifest.content["tokenizer"] if manifest else None
    if described is None or not Path(described["path"]).exists():
        return None
    opened = open_to_decode(Path(described["path"]), described["eod_string"], described.get("image_string"))
    return opened if opened.digest == described["digest"] else None


def why_not_decoded(prefix: Path) -> str:
    """What is to be said of a prefix for which `find_tokenizer` finds none."""
    manifest = manifest_of(bin_path(prefix))
    described = manifest.content["tokenizer"] if manifest else None
    if described is None:
        return "no manifest says which tokenizer made it: name it with --tokenizer"
    if not Path(described["path"]).exists():
        return f"{described['path']}, which made it, is gone: name a copy of it with --tokenizer"
    return f"{described['path']} is no longer the tokenizer that made it: name that with --tokenizer"


def open_to_decode(path: Path, eod: str | None = None, image: str | None = None) -> OpenedTokenizer:
    """A rank file may be any: what tokens spell does not depend on how text is split."""
    return open_tokenizer(path, eod, image, ANY_REGEX if registry.is_bare_rank_file(path) else None)
