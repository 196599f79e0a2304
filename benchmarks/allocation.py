"""Vocabularies with quotas by domain: entries out of reach and tokens on held-out text, by how the domains are merged.

`derived`: as tokpack does, each entry with the merge that the entries before it give it; `side by side`: the same
interleaving with the merges that each domain learned; `one training`: a byte-level BPE of the same size on all text;
`alone`: each domain by itself with its own quota. Every twentieth document is held out. cl100k's regex.

    python benchmarks/allocation.py FOLDER_OF_JSONL_ZST MEGABYTES DOMAIN=ENTRIES...
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import zstandard
from tokenizers import Tokenizer

from tokpack_core.bpe.merge_settings import BYTE_LEVEL_ORDER, Merges, MergeSettings
from tokpack_core.bpe.training import train_merges
from tokpack_core.tokenizers.byte_bpe.allocation import interleaved
from tokpack_core.tokenizers.byte_bpe.training import as_engine
from tokpack_core.tokenizers.byteification.token_bytes import byte_level_name
from tokpack_core.tokenizers.pretokenizers import splits_of
from tokpack_core.tokenizers.quotas import Share, share_out

SPLITS = splits_of("cl100k")
HELD_OUT = 20
MOST_HELD_OUT = 400_000
Texts = list[str]


def read(path: Path, size: int) -> tuple[Texts, Texts]:
    """Documents to train on, and documents held out."""
    texts: tuple[Texts, Texts] = [], []
    held = [0, 0]
    with zstandard.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            text = json.loads(line)["text"]
            part = int(number % HELD_OUT == 0)
            if held[part] < (MOST_HELD_OUT if part else size):
                texts[part].append(text)
                held[part] += len(text.encode())
    return texts


def trained(texts: Texts, entries: int) -> Merges:
    return train_merges(iter([pa.array(texts, pa.large_string())]), SPLITS, MergeSettings(entries), 2)[0]


def side_by_side(learned: dict[str, Merges], quotas: dict[str, int]) -> Merges:
    """Every domain's own merges, interleaved as `allocation` does."""
    tokens = [bytes([byte]) for byte in BYTE_LEVEL_ORDER]
    known = {token: number for number, token in enumerate(tokens)}
    taken = share_out(256, quotas)
    waiting = {name: 0 for name in sorted(quotas)}
    rows = []
    while waiting:
        name = min(waiting, key=lambda name: ((taken[name] + 1) / quotas[name], name))
        merges = learned[name]
        place = waiting[name]
        while place < merges.count.size and merges.tokens[256 + place] in known:
            place += 1
        if taken[name] == quotas[name] or place == merges.count.size:
            del waiting[name]
            continue
        left, right = merges.tokens[merges.left[place]], merges.tokens[merges.right[place]]
        rows.append((known[left], known[right]))
        known[left + right] = len(tokens)
        tokens.append(left + right)
        taken[name] += 1
        waiting[name] = place + 1
    left_ids, right_ids = (pa.array(side, pa.int32()).to_numpy() for side in zip(*rows, strict=True))
    return Merges(tokens, left_ids, right_ids, left_ids.astype("int64"))


def out_of_reach(engine: Tokenizer, tokens: list[bytes]) -> int:
    names = map(byte_level_name, tokens)
    return sum([token.id for token in engine.model.tokenize(name)] != [number] for number, name in enumerate(names))


def main() -> None:
    folder, size = Path(sys.argv[1]), int(float(sys.argv[2]) * 1e6)
    quotas = {name: int(entries) for name, entries in (text.split("=") for text in sys.argv[3:])}
    texts = {name: read(folder / f"{name}.jsonl.zst", size) for name in quotas}
    total = sum(quotas.values())
    learned = {name: trained(texts[name][0], total) for name in quotas}
    shares = {name: Share(quota) for name, quota in quotas.items()}
    compared = {
        "derived": interleaved(learned, shares),
        "side by side": side_by_side(learned, quotas),
        "one training": trained([text for part, _ in texts.values() for text in part], total),
    }
    compared |= {f"alone: {name}": trained(texts[name][0], quotas[name]) for name in quotas}
    print(f"{'':<16}{'entries':>9}{'out of reach':>14}" + "".join(f"{name:>12}" for name in quotas) + "  tokens")
    for label, merges in compared.items():
        engine = as_engine(merges, [], SPLITS, "none")
        counts = [sum(len(found.ids) for found in engine.encode_batch_fast(texts[name][1])) for name in quotas]
        reach = out_of_reach(engine, merges.tokens)
        print(
            f"{label:<16}{len(merges.tokens):>9}{reach:>14}" + "".join(f"{count:>12}" for count in counts), flush=True
        )
    print({name: (share.entries, share.shared, share.passed_over) for name, share in shares.items()})


if __name__ == "__main__":
    main()
