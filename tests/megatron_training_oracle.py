"""Run by test_training_megatron in a process of its own: PackedGPTDataset inside the real megatron-core.

stdin: {"code": the example of docs/training.md, "sets": [{"prefix", "sequence_length", "eod", "vocab_size", "cache",
"extra_token", "attention_mask"}], "many": samples of several epochs to read of the first}
stdout: {"samples": all samples of each set, "epochs": tokens of the many, "filler": sample None of each, "example":
what the example's loop saw, "refused": the error for another sequence length}
"""

from __future__ import annotations

import json
import sys
from collections import OrderedDict
from typing import Any

from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDatasetConfig

from tokpack_core.errors import InputError
from tokpack_core.training.megatron_gpt import PackedGPTDataset


class SpecialIds:
    """What GPTDataset asks of a tokenizer."""

    def __init__(self, vocab_size: int, eod: int) -> None:
        self.vocab_size = vocab_size
        self.eod = eod
        self.unique_identifiers = OrderedDict(vocab_size=vocab_size, eod=eod)


def config_of(
    prefix: str, sequence_length: int, eod: int, vocab_size: int, cache: str, extra_token: bool, attention_mask: bool
) -> GPTDatasetConfig:
    return GPTDatasetConfig(
        random_seed=1234,
        sequence_length=sequence_length,
        blend_per_split=[([prefix], None), None, None],
        path_to_cache=cache,
        tokenizer=SpecialIds(vocab_size, eod),
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=attention_mask,
        add_extra_token_to_sequence=extra_token,
    )


def open_set(config: GPTDatasetConfig, samples: int | None = None) -> Any:
    return BlendedMegatronDatasetBuilder(PackedGPTDataset, [samples, None, None], lambda: True, config).build()[0]


def refusal(job: dict[str, Any]) -> str:
    job = {**job, "sequence_length": 2 * job["sequence_length"], "cache": job["cache"] + "_other"}
    try:
        open_set(config_of(**job))
    except InputError as error:
        return str(error)
    return ""


def main() -> None:
    request = json.load(sys.stdin)
    sets = [open_set(config_of(**job)) for job in request["sets"]]
    epochs = open_set(
        config_of(**{**request["sets"][0], "cache": request["sets"][0]["cache"] + "_epochs"}), request["many"]
    )
    names: dict[str, Any] = {"config": config_of(**request["sets"][0]), "seen": []}
    exec(request["code"], names)
    answers = {
        "samples": [[as_lists(one[i]) for i in range(len(one))] for one in sets],
        "epochs": [epochs[i]["tokens"].tolist() for i in range(len(epochs))],
        "filler": [as_lists(one[None]) for one in sets],
        "example": names["seen"],
        "refused": refusal(request["sets"][0]),
    }
    json.dump(answers, sys.stdout)


def as_lists(sample: dict[str, Any]) -> dict[str, Any]:
    return {name: values.tolist() for name, values in sample.items()}


if __name__ == "__main__":
    main()
