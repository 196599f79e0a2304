"""GPTDataset (Megatron-Core 0.16.1) that knows where documents end: cu_seqlens, positions and loss mask of each pack.

Megatron shuffles, blends, splits and resumes as ever; a sample of a packed prefix is exactly one pack, and its
boundaries come from PREFIX_docs.idx beside PREFIX.idx. Labels are exact with `--eod-mask-loss` and
`--reset-position-ids` or without: both are superseded.

    BlendedMegatronDatasetBuilder(PackedGPTDataset, sizes, is_built_on_rank, config).build()
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.indexed_dataset import IndexedDataset
from megatron.core.datasets.utils import Split

from tokpack_core.errors import InputError
from tokpack_core.training.collators import megatron_sample, require_causal
from tokpack_core.training.packed_dataset import PackedDataset
from tokpack_core.training.visibility import dense_mask
from tokpack_core.training.visible_keys import visibility


class PackedGPTDataset(GPTDataset):
    """Samples are the dictionaries of `collators.megatron_sample`; with `create_attention_mask` also attention_mask,
    bool [1, S, S], True where Megatron masks.

    Raises InputError when the configured sequence length is not that of the packs.
    """

    def __init__(
        self,
        indexed_dataset: IndexedDataset,
        dataset_path: str,
        indexed_indices: np.ndarray,
        num_samples: int | None,
        index_split: Split,
        config: GPTDatasetConfig,
    ) -> None:
        self.packed = PackedDataset(Path(dataset_path), config.tokenizer.eod)
        if config.sequence_length != self.packed.sequence_length:
            raise InputError(
                f"{dataset_path} has packs of {self.packed.sequence_length} tokens, but the sequence length is "
                f"{config.sequence_length}: train with --seq-length {self.packed.sequence_length}"
            )
        super().__init__(indexed_dataset, dataset_path, indexed_indices, num_samples, index_split, config)

    def __getitem__(self, idx: int | None) -> dict[str, torch.Tensor]:
        """Sample `idx`; None is Megatron's filler of incomplete batches, which trains nothing."""
        text, sequences = self._query_document_sample_shuffle_indices(0 if idx is None else idx)
        # With S + 1 tokens a sample ends in the next pack's first token, with S it starts behind the last one's end.
        pack = self.packed[int(sequences[0 if self.config.add_extra_token_to_sequence else -1])]
        if not np.array_equal(text[: pack.tokens.size], pack.tokens):
            raise InputError(
                f"{self.packed.prefix}: sample {idx} is not exactly one pack, so its boundaries are unknown: "
                "give Megatron the prefix of the packs and its index cache a folder of its own"
            )
        sample = megatron_sample(pack)
        if self.config.create_attention_mask:
            seen = torch.from_numpy(visibility(pack.segments))[None]
            sample["attention_mask"] = ~dense_mask(seen)
        else:
            require_causal([pack], "create_attention_mask, or PackedDataset")
        if idx is None:
            sample["loss_mask"].zero_()
        return sample
