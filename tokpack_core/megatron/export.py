"""From packing plans and token shards to the Megatron files of one split.

`PREFIX.bin` holds packs back to back, each exactly S tokens: its segments, then EOD up to S. With an alignment A, each
segment starts at a multiple of A in its pack and EOD fills the gap before the next. Two indexes describe it:

    PREFIX.idx        one sequence = one document = one pack. GPTDataset reads S + 1 tokens a sample and consumes S,
                      so with exactly S tokens a pack every sample is one pack (the last one of a run is not read).
    DOCS_PREFIX.idx   one document = one pack, its sequences are the segments; a filled tail is a sequence of its own,
                      so that pointers stay contiguous, and so is a gap. Segments with images are cut at their
                      borders, and modes then say which sequences are images. DOCS_PREFIX.bin is a hard link to
                      PREFIX.bin.

DOCS_PREFIX.segments.npy says of each sequence of DOCS_PREFIX.idx which document it is of, so that nobody has to guess
what is filled: see `training.segments_file`.

Tokens are gathered by numba kernels into one reused buffer; mapped shards are read with pread, since pages of a mapping
count as memory of the process, and packs touch all of them. So memory does not depend on the size of the set.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal, Protocol

import numpy as np
import numpy.typing as npt

from tokpack_core.errors import InputError
from tokpack_core.megatron.gather_kernels import Segments, copy_from_part, fill_tails, read_from_part
from tokpack_core.megatron.indexed_dataset import CODES, IndexWriter, bin_path, idx_path
from tokpack_core.megatron.indexed_reader import file_of
from tokpack_core.packing.image_spans import ModeRuns
from tokpack_core.training.segments import ImageAttention
from tokpack_core.training.segments_file import segment_rows, segments_stream

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UNREADABLE = -2
"""What the kernel gives, less the number of the segment, when it cannot read."""
BUFFER_BYTES = 2 << 20
"""Large enough for few calls, small enough for the processor's cache: 1,600 MB/s against 1,000 with 16 MiB."""


class Plan(Protocol):
    """Packs as runs of segments, in compressed sparse row form; a PackingPlan is one."""

    @property
    def pack_offsets(self) -> Int64:
        """[packs + 1]: the segments of pack p are [pack_offsets[p], pack_offsets[p + 1])"""

    @property
    def document(self) -> npt.NDArray[np.integer]:
        """[segments]"""

    @property
    def start(self) -> Int64:
        """[segments]: first token within the document"""

    @property
    def length(self) -> Int32:
        """[segments]: tokens"""

    def loads(self) -> Int64:
        """Tokens in each pack, [packs]"""


@dataclass(frozen=True)
class TokenSource:
    """Where the tokens of a plan's documents are."""

    parts: Sequence[npt.NDArray[np.integer]]
    """Tokens of each shard, uint16 or int32 [tokens]; mapped `.bin` files."""
    part: npt.NDArray[np.integer]
    """[documents]: index into `parts`."""
    position: npt.NDArray[np.integer]
    """[documents]: first token of the document within its part."""


@dataclass(frozen=True)
class Exported:
    """What was written: packs, segments (without gaps and filled tails), what DOCS_PREFIX.bin is of PREFIX.bin,
    positions that EOD fills, images and their tokens."""

    packs: int
    segments: int
    same_as: Literal["hard_link", "copy"]
    padding: int
    images: int
    image_tokens: int


class PackedWriter(AbstractContextManager["PackedWriter"]):
    """Writes packs block by block; `close` completes both indexes.

    As a context manager it removes all files when the body raises, and otherwise leaves `exported`.
    """

    def __init__(
        self,
        prefix: Path,
        docs_prefix: Path,
        dtype: np.dtype,
        sequence_length: int,
        eod: int,
        align: int = 1,
        image_attention: ImageAttention | None = None,
    ) -> None:
        """`image_attention`: what images see, when documents hold images; None for text."""
        if dtype not in CODES or not 0 <= eod <= np.iinfo(dtype).max:
            raise ValueError(f"{dtype} cannot hold EOD {eod} in a Megatron file: take dtype_for(vocab_size)")
        if sequence_length % align:
            raise ValueError(f"{prefix}: packs of {sequence_length} tokens are no multiple of the alignment {align}")
        self.prefix = prefix
        self.docs_prefix = docs_prefix
        self.dtype = dtype
        self.sequence_length = sequence_length
        self.eod = eod
        self.align = align
        self.image_attention = image_attention
        self.exported: Exported | None = None
        self._packs = 0
        self._segments = 0
        self._padding = 0
        self._images = 0
        self._image_tokens = 0
        rows = max(1, BUFFER_BYTES // (sequence_length * dtype.itemsize))
        self._buffer = np.empty((rows, sequence_length), dtype)
        self._tokens = bin_path(prefix).open("wb")
        self._pack_index = IndexWriter(idx_path(prefix), dtype)
        self._docs_index = IndexWriter(idx_path(docs_prefix), dtype)
        self._rows = segments_stream(docs_prefix)

    def write_block(self, plan: Plan, pack_order: Int64, source: TokenSource, runs: ModeRuns | None = None) -> None:
        """Append the packs `pack_order` [packs] of `plan`, in that order; `runs` cut its segments at image borders.

        Raises InputError when a document does not lie within its part, ValueError when plan and writer disagree.
        """
        if filled_positions(plan, self.align).max(initial=0) > self.sequence_length:
            raise ValueError(f"{self.prefix}: a pack is longer than {self.sequence_length} tokens")
        source = TokenSource(
            [readable(tokens, self.dtype) for tokens in source.parts],
            np.ascontiguousarray(source.part, np.int32),
            np.ascontiguousarray(source.position, np.int64),
        )
        self._padding += pack_order.size * self.sequence_length - int(plan.loads()[pack_order].sum())
        runs = runs or ModeRuns.of_text(plan.length)
        rows = self._buffer.shape[0]
        with ExitStack() as opened:
            files = [open_file(tokens, opened) for tokens in source.parts]
            for begin in range(0, pack_order.size, rows):
                packs = np.ascontiguousarray(pack_order[begin : begin + rows], np.int64)
                self._write_packs(plan, packs, source, files, runs)

    def _write_packs(
        self, plan: Plan, packs: Int64, source: TokenSource, files: list[BinaryIO | None], runs: ModeRuns
    ) -> None:
        segments: Segments = (plan.pack_offsets, plan.document, plan.start, plan.length)
        buffer = self._buffer[: packs.size]
        for number in parts_in_use(plan, packs, source):
            tokens = source.parts[number]
            where = (buffer, packs, segments, self.align, source.part, source.position, number)
            file = files[number]
            bad = copy_from_part(*where, tokens) if file is None else read_from_part(*where, tokens.size, file.fileno())
            if bad <= UNREADABLE and file is not None:
                segment = UNREADABLE - bad
                token = int(source.position[plan.document[segment]] + plan.start[segment])
                raise read_error(file, token * tokens.itemsize)
            if bad >= 0:
                raise InputError(
                    f"{self.prefix}: document {int(plan.document[bad])} of the plan reaches past the end of part "
                    f"{number}, which has {tokens.size} tokens: pack its shards again"
                )
        first, last = plan.pack_offsets[packs], plan.pack_offsets[packs + 1]
        count = int((last - first).sum())
        most = int((runs.offsets[last] - runs.offsets[first]).sum()) + packs.size + (self.align > 1) * count
        sequences = np.empty(most, np.int32), np.empty(most, np.int8), np.empty(most, np.int32)
        counts = np.empty(packs.size, np.int32)
        columns = runs.offsets, runs.length, runs.mode
        used = fill_tails(buffer, packs, segments, columns, self.align, self.eod, sequences, counts)
        length, mode, document = sequences[0][:used], sequences[1][:used], sequences[2][:used]
        self._tokens.write(buffer.data)
        self._docs_index.add_sequences(length, None if self.image_attention is None else mode)
        self._docs_index.add_documents(counts)
        self._rows.add(segment_rows(document, self.image_attention or ImageAttention.CAUSAL))
        self._images += int(np.count_nonzero(mode))
        self._image_tokens += int(length[mode != 0].sum(dtype=np.int64))
        self._pack_index.add_sequences(np.full(packs.size, self.sequence_length, np.int32))
        self._pack_index.add_documents(np.ones(packs.size, np.int32))
        self._packs += packs.size
        self._segments += count

    def close(self) -> Exported:
        """Complete the files; a second call gives the same answer."""
        if self.exported is None:
            self._tokens.close()
            self._pack_index.close()
            self._docs_index.close()
            self._rows.close()
            same_as = link_or_copy(bin_path(self.prefix), bin_path(self.docs_prefix))
            images = self._images, self._image_tokens
            self.exported = Exported(self._packs, self._segments, same_as, self._padding, *images)
        return self.exported

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
            return
        self._tokens.close()
        self._pack_index.abandon()
        self._docs_index.abandon()
        self._rows.abandon()
        bin_path(self.prefix).unlink(missing_ok=True)


def filled_positions(plan: Plan, align: int) -> Int64:
    """Positions of each pack up to the gap after its last segment, [packs]."""
    if align == 1 or plan.pack_offsets.size == 1:
        return plan.loads()
    return np.add.reduceat(plan.length + -plan.length % align, plan.pack_offsets[:-1], dtype=np.int64)


def readable(tokens: npt.NDArray[np.integer], dtype: np.dtype) -> npt.NDArray[np.integer]:
    """The same memory as a plain read-only array, so that each dtype compiles one kernel."""
    if tokens.dtype != dtype:
        raise ValueError(f"a part has {tokens.dtype} tokens, the packs have {dtype}: both follow the vocabulary")
    view = np.asarray(tokens).view()
    view.flags.writeable = False
    return view


def open_file(tokens: npt.NDArray[np.integer], opened: ExitStack) -> BinaryIO | None:
    """The file that a part maps, closed with `opened`; None for a part that is no whole mapped file."""
    path = file_of(tokens)
    return None if path is None else opened.enter_context(path.open("rb"))


def read_error(file: BinaryIO, offset: int) -> OSError:
    """Why a part cannot be read at `offset`: the kernel only tells that it cannot."""
    try:
        os.pread(file.fileno(), 1, offset)
    except OSError as error:
        return OSError(error.errno, error.strerror, file.name)
    return OSError(errno.EIO, "cut while it was read", file.name)


def parts_in_use(plan: Plan, packs: Int64, source: TokenSource) -> list[int]:
    """Parts that hold a segment of these packs."""
    if len(source.parts) == 1:
        return [0]
    first, counts = plan.pack_offsets[packs], np.diff(plan.pack_offsets)[packs]
    rows = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    return np.unique(source.part[plan.document[rows]]).tolist()


def link_or_copy(source: Path, target: Path) -> Literal["hard_link", "copy"]:
    """Make `target` the same bytes as `source`, without taking space where the file system can link."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
        return "copy"
    return "hard_link"
