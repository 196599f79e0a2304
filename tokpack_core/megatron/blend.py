"""How Megatron is told to read exported sets: the blend file and the command line.

`--per-split-data-args-path FILE` takes a JSON object with exactly the keys train, valid and test; each is a flat list
weight, prefix, weight, prefix, ... of strings, or null. Each split has prefixes of its own, so `--split` and
`--data-path` are not used. Megatron samples a prefix with probability weight / sum of weights, whatever its size:
one epoch of each corpus is weights in proportion to the packs.
"""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path

from tokpack_core.config import SPLITS, Split


def blend_weights(epochs: list[float], packs: list[int]) -> list[float]:
    """Weights that give each set its number of epochs: epochs x packs."""
    return [share * count for share, count in zip(epochs, packs, strict=True)]


def blend_line(weights: list[float], prefixes: list[str]) -> list[str]:
    """What follows `--train-data-path` (or --valid-, --test-): weight, prefix, weight, prefix, ... as strings."""
    if not all(math.isfinite(weight) and weight > 0 for weight in weights):
        raise ValueError(f"blend weights must be positive numbers, not {weights}")
    return [text for weight, prefix in zip(weights, prefixes, strict=True) for text in (repr(float(weight)), prefix)]


def write_blend(path: Path, lines: dict[Split, list[str]]) -> None:
    """Write the file for `--per-split-data-args-path`; a split without a line is null, which Megatron skips."""
    blend = {split: lines.get(split) or None for split in SPLITS}
    path.write_text(json.dumps(blend, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def shell_arguments(lines: dict[Split, list[str]], sequence_length: int) -> str:
    """A bash file that, sourced, sets MEGATRON_DATA_ARGUMENTS; prefixes become absolute, wherever the folder lies.

    It wants MEGATRON_DATA_CACHE, a folder that can be written: Megatron's default is inside the dataset, which is
    read-only and whose indices it would not renew.
    """
    arguments = []
    for split, line in lines.items():
        if line:
            blend = " ".join(f'{weight} "$here"/{shlex.quote(prefix)}' for weight, prefix in batched_pairs(line))
            arguments.append(f"--{split}-data-path {blend}")
    arguments += ['--data-cache-path "${MEGATRON_DATA_CACHE:?a folder that can be written, outside the dataset}"']
    arguments += [f"--seq-length {sequence_length}", "--eod-mask-loss", "--reset-position-ids"]
    body = "".join(f"  {argument}\n" for argument in arguments)
    usage = '# source this file, then: python pretrain_gpt.py "${MEGATRON_DATA_ARGUMENTS[@]}" ...\n'
    here = 'here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"\n'
    return f"{usage}{here}MEGATRON_DATA_ARGUMENTS=(\n{body})\n"


def batched_pairs(line: list[str]) -> list[tuple[str, str]]:
    return list(zip(line[::2], line[1::2], strict=True))
