"""What the store costs: hashing and publishing beside tokenizing, and `verify` beside sha256sum.

    python benchmarks/store_cost.py [MEGABYTES] [FOLDER] [FILE...]

Tokenizing: the units of a corpus are built with byte_bpe and the fastest encoder in this process; CPU time of building
a unit (read, encode, write) against CPU time of all else (lease, proof of the inputs, sha256, manifest, fsync, rename,
action), once everything is compiled and loaded. The same once more with the inputs hashed, as in a store that was
moved. The corpus is FILE..., else MEGABYTES of Python source (the standard library's and that of the packages installed
beside tokpack, each file once) in four files. Code is the hardest case: it gives the most tokens to hash in a second.

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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
  text: {paths: PATHS, splits: {train: 1.0}}
tokenizers:
  bpe:
    family: byte_bpe
    vocab_size: 32000
    train_on: {text: 1.0}
    sample_bytes: 20MB
    special_tokens: {eod: "<|endoftext|>"}
"""


def sources() -> Iterator[str]:
    """Different Python files, the standard library's first."""
    seen = set()
    for kind in ("stdlib", "purelib"):
        for path in sorted(Path(sysconfig.get_paths()[kind]).rglob("*.py")):
            text = path.read_text(encoding="utf-8", errors="replace")
            if hash(text) not in seen:
                seen.add(hash(text))
                yield text


def write_corpus(folder: Path, size: int) -> None:
    """FILES files of about the same size, `size` bytes together."""
    texts, taken = [], 0
    for text in sources():
        texts.append(text)
        taken += len(text.encode())
        if taken >= size:
            break
    else:
        raise SystemExit(f"only {taken / 1e6:,.0f} MB of Python source are installed here; name a smaller size")
    for number in range(FILES):
        with (folder / f"{number}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps({"text": text}) + "\n" for text in texts[number::FILES])


@dataclass(frozen=True)
class Cost:
    """CPU seconds of building units, of all else around them, and of hashing their inputs; bytes of text."""

    encoder: str
    units: int
    size: int
    built: float
    kept: float
    hashed: float


def cost_of_units(work: Workplace) -> Cost:
    for build in (corpus.build, normalize.build):
        build(work, "text")
    tokenizer.build(work, "bpe")
    model, folder = current(work, tokenizer.asset_key("bpe"))
    _, normalized = current(work, normalize.asset_key("text"))
    framing = shards.Framing(bos=False)
    parts = normalize.read_parts(work.store, normalized)
    units = [shards.make_unit(model, folder, framing, part) for part in parts]
    with publication.staging(work.store) as draft:
        units[0].build(draft)
    built, kept, encoder = publish(work.store, units)
    read = list({(one.ref, one.path) for unit in units for one in unit.reads if one.path})
    begin = time.process_time()
    for ref, path in read:
        sha256_of(objects.folder_of(work.store, ref) / path)
    hashed = time.process_time() - begin
    return Cost(encoder, len(units), sum(unit.weight for unit in units), built, kept, hashed)


def publish(store: Store, units: list[Unit]) -> tuple[float, float, str]:
    """What `stages.unit.run_units` does: CPU seconds of building and of all else, and what encoded."""
    begin, built = time.process_time(), 0.0
    with leases.hold(store) as lease:
        for unit in units:
            with publication.staging(store) as folder:
                proven = objects.require_files(store, unit.reads)
                before = time.process_time()
                counts = unit.build(folder)
                built += time.process_time() - before
                assert objects.still_the_same(proven)
                ref = publication.publish(store, unit.action.stage, folder, counts, lease.claim)
                actions.record(store, unit.action, ref, counts)
    return built, time.process_time() - begin - built, counts["encoder"]


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
    files = [str(Path(file).absolute()) for file in sys.argv[3:]]
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as name:
        base = Path(name)
        (base / "configs").mkdir()
        if not files:
            write_corpus(base, megabytes * 10**6)
        config = CONFIG.replace("PATHS", json.dumps(files or ["*.jsonl"]))
        (base / "configs" / "cost.yaml").write_text(config, encoding="utf-8")
        store = open_store(base / "store", create=True)
        cost = cost_of_units(Workplace(load_project(base / "configs"), store, LocalEngine(1), lambda _: None))
        print(
            f"{cost.size / 1e6:,.0f} MB of text in {cost.units} units: tokenizing with {cost.encoder} "
            f"{cost.built:,.2f} s of CPU ({cost.size / cost.built / 1e6:,.0f} MB/s), hashing and publishing "
            f"{cost.kept:,.3f} s, {cost.kept / cost.built:.1%}; hashing the inputs would add "
            f"{cost.hashed / cost.built:.1%}"
        )
        plain, ours, size = verify_speeds(store, publish_dataset(store, base, megabytes * 10**6))
        print(
            f"{size / 1e6:,.0f} MB of packs: sha256sum {plain / 1e6:,.0f} MB/s, verify {ours / 1e6:,.0f} MB/s, "
            f"{ours / plain:.0%}"
        )


if __name__ == "__main__":
    main()
