"""Packing under two limits, tokens and images, on synthetic sets of interleaved documents.

A document has 0 to 8 images (uniform), each of 256 to 4,096 tokens, and text around each, lognormal with a median of
200 tokens and sigma 1.2. What is beyond a pack is cut: text anywhere, images never. `uniform` draws image tokens
evenly, so tokens bind; `tiles` takes 256, 512, 1,024, 2,048 or 4,096 with shares 0.4, 0.25, 0.15, 0.12 and 0.08 and a
tenth of the text, so images bind as much. The bound is the greater of the Martello-Toth bounds L2 by tokens and by
images; no packing can meet both where they conflict, so the excess is at most what is shown, and
`two_limits_bound.py` tells how much of it is the bound's.

    python benchmarks/two_limits.py [DOCUMENTS]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from tokpack_core.packing.first_fit import first_fit
from tokpack_core.packing.two_limits import lower_bound, pack_two_limits

TILES = (256, 512, 1_024, 2_048, 4_096), (0.4, 0.25, 0.15, 0.12, 0.08)


def interleaved(documents: int, capacity: int, budget: int, sizes: str) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and images of pieces of documents, in the order of the documents."""
    rng = np.random.default_rng(0)
    median = 200 if sizes == "uniform" else 20
    items: list[tuple[int, int]] = []
    for images in rng.integers(0, 9, documents).tolist():
        drawn = rng.integers(256, 4_097, images) if sizes == "uniform" else rng.choice(TILES[0], images, p=TILES[1])
        text = rng.lognormal(np.log(median), 1.2, images + 1).astype(int) + 1
        tokens = count = 0
        for place in range(2 * images + 1):
            is_image = place % 2
            left = int(drawn[place // 2] if is_image else text[place // 2])
            while left:
                if tokens == capacity or (is_image and (tokens + left > capacity or count == budget)):
                    items.append((tokens, count))
                    tokens = count = 0
                piece = left if is_image else min(left, capacity - tokens)
                tokens, count, left = tokens + piece, count + is_image, left - piece
        items.append((tokens, count))
    return np.array([t for t, _ in items]), np.array([k for _, k in items])


def main() -> None:
    documents = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    pack_two_limits(np.array([1]), np.array([1]), 8, 2, b"")
    for sizes in ("uniform", "tiles"):
        for capacity, budget in ((16_384, 16), (32_768, 24)):
            tokens, counts = interleaved(documents, capacity, budget, sizes)
            bound = lower_bound(tokens, counts, capacity, budget)
            began = time.process_time()
            packs = pack_two_limits(tokens, counts, capacity, budget, b"key")[1].size - 1
            seconds = time.process_time() - began
            by_tokens, by_images = tokens.sum() / capacity, counts.sum() / budget
            alone = first_fit(tokens, capacity, None, decreasing=True)
            too_many = np.add.reduceat(counts[alone[0]], alone[1][:-1]) > budget
            print(
                f"{sizes} {capacity}/{budget}: {tokens.size:,} items, {by_tokens:,.0f} packs by tokens, "
                f"{by_images:,.0f} by images, bound {bound:,}, packed in {packs:,}: {packs / bound - 1:.2%} over, "
                f"{seconds:.2f} CPU-s (by tokens alone {too_many.mean():.0%} of the packs would hold too many images)"
            )


if __name__ == "__main__":
    main()
