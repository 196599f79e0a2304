"""Run by test_megatron_core in a process of its own: reads prefixes with the real megatron-core.

stdin: {"datasets": [{"prefix", "mmap", "multimodal"}], "gpt": [{"prefix", "sequence_length", "eod", "vocab_size",
"cache"}]}
stdout: the same two lists with what megatron-core read. Arrays are copied while the dataset is alive: views into a
closed mapping crash.
"""

from __future__ import annotations

import json
import sys
from collections import OrderedDict
from typing import Any

from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.indexed_dataset import IndexedDataset


class SpecialIds:
    """What GPTDataset asks of a tokenizer."""

    def __init__(self, vocab_size: int, eod: int) -> None:
        self.vocab_size = vocab_size
        self.eod = eod
        self.unique_identifiers = OrderedDict(vocab_size=vocab_size, eod=eod)


def read_dataset(prefix: str, mmap: bool, multimodal: bool = False) -> dict[str, Any]:
    dataset = IndexedDataset(prefix, multimodal=multimodal, mmap=mmap)
    if multimodal:
        pairs = [dataset[i] for i in range(len(dataset))]
        return {
            "sequences": [tokens.tolist() for tokens, _ in pairs],
            "modes": [int(mode) for _, mode in pairs],
            "document_indices": dataset.document_indices.tolist(),
        }
    return {
        "dtype": dataset.index.dtype.__name__,
        "sequence_lengths": dataset.sequence_lengths.tolist(),
        "sequence_pointers": dataset.index.sequence_pointers.tolist(),
        "document_indices": dataset.document_indices.tolist(),
        "sequences": [dataset[i].tolist() for i in range(len(dataset))],
    }


def read_samples(prefix: str, sequence_length: int, eod: int, vocab_size: int, cache: str) -> list[dict[str, Any]]:
    """Every sample of one epoch, with the switches that our command line sets."""
    config = GPTDatasetConfig(
        random_seed=1234,
        sequence_length=sequence_length,
        blend_per_split=[([prefix], None), None, None],
        path_to_cache=cache,
        tokenizer=SpecialIds(vocab_size, eod),
        reset_position_ids=True,
        reset_attention_mask=False,
        eod_mask_loss=True,
        create_attention_mask=False,
    )
    train, _, _ = BlendedMegatronDatasetBuilder(GPTDataset, [None, None, None], lambda: True, config).build()
    return [{name: values.tolist() for name, values in train[i].items()} for i in range(len(train))]


def main() -> None:
    jobs = json.load(sys.stdin)
    answers = {
        "datasets": [read_dataset(**job) for job in jobs["datasets"]],
        "gpt": [read_samples(**job) for job in jobs["gpt"]],
    }
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
