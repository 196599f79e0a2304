"""What the store costs: hashing and publishing beside tokenizing, and `verify` beside sha256sum.

    python benchmarks/store_cost.py [MEGABYTES] [FOLDER]

Tokenizing: the units of a corpus of MEGABYTES of text (the standard library's source, repeated, each document with a
number of its own) are built with byte_bpe, the fastest encoder, in this process; CPU time of building
a unit (read, encode, write) against CPU time of all else (proof of the inputs, sha256, manifest, fsync, rename, action,
lease), of all units after a first one. The same once more with the inputs hashed, as in a store that was moved.

Verifying: a dataset of 2 x MEGABYTES of tokens in packs is published, then `sha256sum` and `tokpack verify`'s own
function (digests and structure) read it in turn from the page cache; best of three of each, wall time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from export_speed import SEQUENCE_LENGTH, UINT16, web_lengths, write_shards

from tokpack_core.commands.verify_objects import verify_objects
from tokpack_core.config.files import load_project
from tokpack_core.engine import LocalEngine
from tokpack_core.megatron.export import PackedWriter
from tokpack_core.packing.permutation import permuted
from tokpack_core.packing.strategies import pack
from tokpack_core.stages import corpus, export, normalize, shards, tokenizer
from tokpack_core.stages.asset import Workplace, current
from tokpack_core.stages.unit import Unit
from tokpack_core.store import actions, leases, objects, publication
from tokpack_core.store.files import sha256_of
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store, open_store

EOD = 0
VOCABULARY = 32_000
FILES = 4
CONFIG = """\
corpora:
  code: {paths: ["*.jsonl"], splits: {train: 1.0}}
tokenizers:
  bpe:
    family: byte_bpe
    vocab_size: 16000
    train_on: {code: 1.0}
    sample_bytes: 5MB
    special_tokens: {eod: "<|endoftext|>"}
"""


def sources() -> list[str]:
    """The standard library's modules, without its tests."""
    paths = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("[a-z]*/*.py"))
    return [path.read_text(encoding="utf-8", errors="replace") for path in paths if path.parent.name != "test"]


def write_corpus(folder: Path, size: int) -> None:
    texts = sources()
    for number in range(FILES):
        written = 0
        with (folder / f"{number}.jsonl").open("w", encoding="utf-8") as file:
            while written < size / FILES:
                for text in texts:
                    written += file.write(json.dumps({"text": f"# {number}, {written}\n{text}"}) + "\n")


def cpu_of_units(work: Workplace) -> tuple[float, float, float, int]:
    """CPU seconds of building units, of proving and publishing, and of hashing the inputs; bytes of text."""
    for build in (corpus.build, normalize.build):
        build(work, "code")
    tokenizer.build(work, "bpe")
    model, folder = current(work, tokenizer.asset_key("bpe"))
    _, normalized = current(work, normalize.asset_key("code"))
    units = [shards.make_unit(model, folder, False, part) for part in normalize.read_parts(work.store, normalized)]
    publish(work.store, units[0])
    spent = [publish(work.store, unit) for unit in units[1:]]
    read = list({(one.ref, one.path) for unit in units[1:] for one in unit.reads if one.path})
    begin = time.process_time()
    for ref, path in read:
        sha256_of(objects.folder_of(work.store, ref) / path)
    hashed = time.process_time() - begin
    size = sum(unit.weight for unit in units[1:])
    return sum(built for built, _ in spent), sum(kept for _, kept in spent), hashed, size


def publish(store: Store, unit: Unit) -> tuple[float, float]:
    """What `stages.unit.build_unit` does."""
    begin = time.process_time()
    with leases.hold(store) as lease, publication.staging(store) as folder:
        proven = objects.require_files(store, unit.reads)
        before = time.process_time()
        counts = unit.build(folder)
        built = time.process_time() - before
        assert objects.still_the_same(proven)
        ref = publication.publish(store, unit.action.stage, folder, counts, lease.claim)
        actions.record(store, unit.action, ref, counts)
    return built, time.process_time() - begin - built


def publish_dataset(store: Store, folder: Path, tokens: int) -> ObjectRef:
    lengths = web_lengths(tokens)
    source = write_shards(folder, lengths)
    plan = pack(lengths, SEQUENCE_LENGTH, "best_fit")
    with publication.staging(store) as draft:
        with PackedWriter(draft / "x", draft / "x_docs", UINT16, SEQUENCE_LENGTH, EOD) as writer:
            writer.write_block(plan, permuted(plan.packs, b"key"), source)
        counts = {"sequence_length": SEQUENCE_LENGTH, "eod": EOD, "vocab_size": VOCABULARY, "packs": {"x": plan.packs}}
        return publication.publish(store, export.STAGE, draft, counts)


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def verify_speeds(store: Store, ref: ObjectRef) -> tuple[float, float, int]:
    """Bytes a second of sha256sum and of verify, and the bytes."""
    manifest = objects.read_manifest(store, ref)
    folder = objects.folder_of(store, ref)
    paths = [str(folder / file.path) for file in manifest.files if file.same_as is None]
    faults = verify_objects(store, [ref], quiet=True).faults
    assert not faults, faults
    plain, ours = [], []
    for _ in range(3):
        plain.append(seconds(lambda: subprocess.run(["sha256sum", *paths], check=True, stdout=subprocess.DEVNULL)))
        ours.append(seconds(lambda: verify_objects(store, [ref], quiet=True)))
    return manifest.size / min(plain), manifest.size / min(ours), manifest.size


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as name:
        base = Path(name)
        (base / "configs").mkdir()
        (base / "configs" / "cost.yaml").write_text(CONFIG, encoding="utf-8")
        write_corpus(base, megabytes * 10**6)
        store = open_store(base / "store", create=True)
        work = Workplace(load_project(base / "configs"), store, LocalEngine(1), lambda _: None)
        built, kept, hashed, size = cpu_of_units(work)
        print(
            f"{size / 1e6:,.0f} MB of text: tokenizing {built:,.2f} s of CPU ({size / built / 1e6:,.0f} MB/s), hashing "
            f"and publishing {kept:,.3f} s, {kept / built:.1%}; hashing the inputs would add {hashed / built:.1%}"
        )
        plain, ours, size = verify_speeds(store, publish_dataset(store, base, megabytes * 10**6))
        print(
            f"{size / 1e6:,.0f} MB of packs: sha256sum {plain / 1e6:,.0f} MB/s, verify {ours / 1e6:,.0f} MB/s, "
            f"{ours / plain:.0%}"
        )


if __name__ == "__main__":
    main()
