"""Opens prefixes with the real megatron-core, where it is installed.

In a process of its own: importing it takes seconds and torch, and a broken file can crash what maps it.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import asdict, dataclass

NOT_HERE = 3
"""Exit status of the process when megatron-core, or what it needs, cannot be imported."""


@dataclass(frozen=True)
class Expected:
    """What a prefix must have when megatron-core opens it.

    Attributes:
        sequence_length: of every sequence; None where lengths differ.
        modes: whether sequences have modes.
    """

    prefix: str
    documents: int
    tokens: int
    sequence_length: int | None
    modes: bool = False


def read_with_megatron_core(expected: list[Expected]) -> tuple[str, list[str]] | None:
    """The version of megatron-core and the faults it finds; None where it cannot be imported.

    Where its process crashes, the version is unknown and the crash is the fault.
    """
    if importlib.util.find_spec("megatron") is None:
        return None
    jobs = json.dumps([asdict(job) for job in expected])
    command = [sys.executable, "-W", "ignore", "-m", __name__]
    done = subprocess.run(command, input=jobs, capture_output=True, text=True, check=False)
    if done.returncode == NOT_HERE:
        return None
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return "", [f"megatron-core crashed on the dataset, status {done.returncode}: {said[:300]}"]
    version, faults = json.loads(done.stdout.splitlines()[-1])
    return version, faults


def fault_of(job: Expected) -> str | None:
    """What is wrong with a prefix, opened as Megatron's datasets open it: all lengths, and tokens at three places."""
    from megatron.core.datasets.indexed_dataset import IndexedDataset

    try:
        dataset = IndexedDataset(job.prefix, multimodal=job.modes, mmap=True)
        lengths = dataset.sequence_lengths
        found = len(dataset.document_indices) - 1, int(lengths.sum(dtype="int64"))
        if found != (job.documents, job.tokens):
            wanted = f"{job.documents} documents with {job.tokens} tokens"
            return f"{job.prefix}: megatron-core finds {found[0]} documents with {found[1]} tokens instead of {wanted}"
        if job.sequence_length is not None and (lengths != job.sequence_length).any():
            return f"{job.prefix}: megatron-core finds sequences of other than {job.sequence_length} tokens"
        for place in sorted({0, len(dataset) // 2, len(dataset) - 1}):
            read = dataset[place][0] if job.modes else dataset[place]
            if len(read) != lengths[place]:
                return f"{job.prefix}: megatron-core reads {len(read)} of {lengths[place]} tokens of sequence {place}"
    except Exception as error:  # what megatron-core raises has no common base
        return f"{job.prefix}: megatron-core cannot open it: {type(error).__name__}: {' '.join(str(error).split())}"
    return None


def main() -> int:
    try:
        from megatron.core import __version__
        from megatron.core.datasets import indexed_dataset as _  # noqa: F401
    except Exception:  # a torch that does not fit this machine raises OSError and others
        return NOT_HERE
    faults = [fault for job in json.load(sys.stdin) if (fault := fault_of(Expected(**job)))]
    print(json.dumps([__version__, faults]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
