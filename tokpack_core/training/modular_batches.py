"""Batches for training on sub-tokenizers: each of a few languages, with the ids that these may give.

A step draws languages (see `language_draws`), and its packs are dealt out among them; all ranks of a step have the same
languages, hence the same ids. Each language's packs come in an order of their own, epoch after epoch, as in
`pack_batches`: none is left out and none comes twice in an epoch. A step says all there is to resume; how many packs of
each language came before is counted from the draws, a second for some million steps.

The packs of a language must hold ids of its sub-tokenizer only: shards made with `encode_by_language: true`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tokpack_core.errors import InputError
from tokpack_core.packing.permutation import permuted
from tokpack_core.training.collators import flatten
from tokpack_core.training.language_draws import LanguageDraws, as_weights
from tokpack_core.training.packed_dataset import Pack, PackedDataset

Collate = Callable[[Sequence[Pack]], Mapping[str, Any]]


class ModularBatches(torch.utils.data.IterableDataset[dict[str, Any]]):
    """Batches of one rank, from `start_step` to `steps` (None: without end), for a DataLoader with `batch_size=None`.

    Each is what `collate` makes of its packs, with `allowed_ids`, int64 [ids], ascending, for `masked_loss`.
    """

    def __init__(
        self,
        datasets: Mapping[str, PackedDataset],
        lang_to_ids: Mapping[str, npt.ArrayLike],
        batch_size: int,
        *,
        most_languages: int = 1,
        weights: Mapping[str, float] | None = None,
        collate: Collate = flatten,
        seed: int = 0,
        rank: int = 0,
        ranks: int = 1,
        start_step: int = 0,
        steps: int | None = None,
    ) -> None:
        """`datasets`: language → its packs; `lang_to_ids`: what lang_to_ids.json holds; `weights`: language → chance to
        be drawn, by default the same for all.

        Raises InputError when a language has no packs, no ids or no positive weight, or numbers do not go together.
        """
        self.languages = sorted(datasets)
        if not self.languages:
            raise InputError("there is no language to draw: give the packs of one or more")
        for language in self.languages:
            if language not in lang_to_ids:
                known = ", ".join(sorted(lang_to_ids))
                raise InputError(f"lang_to_ids.json has no language {language!r}: it has {known}")
            if len(datasets[language]) == 0:
                raise InputError(f"{datasets[language].prefix} has no packs of language {language!r}: leave it out")
        if batch_size < 1 or not 0 <= rank < ranks or not 1 <= most_languages <= len(self.languages):
            raise InputError(
                f"cannot share {most_languages} of {len(self.languages)} languages in batches of {batch_size} with "
                f"rank {rank} of {ranks}: batches are at least 1, ranks count from 0, languages from 1"
            )
        try:
            chances = as_weights([1.0 if weights is None else weights[language] for language in self.languages])
        except (KeyError, ValueError):
            raise InputError(f"weights must name every language with a positive number, not {weights}") from None
        self._datasets = [datasets[language] for language in self.languages]
        self._ids = [np.unique(np.asarray(lang_to_ids[language], np.int64)) for language in self.languages]
        self._draws = LanguageDraws(chances, most_languages, batch_size * ranks, seed)
        self._batch_size, self._rank, self._seed = batch_size, rank, seed
        self._collate = collate
        self.start_step, self.steps = start_step, steps
        self._orders: dict[int, tuple[int, npt.NDArray[np.int64]]] = {}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        worker = torch.utils.data.get_worker_info()
        own, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        step = self.start_step
        before = self._draws.packs_before(step)
        while self.steps is None or step < self.steps:
            drawn = self.drawn(step)
            if (step - self.start_step) % workers == own:
                yield self._batch(step, drawn, before)
            before += np.bincount(np.resize(drawn, self._draws.positions), minlength=before.size)
            step += 1

    def drawn(self, step: int) -> npt.NDArray[np.int64]:
        """Numbers in `languages` of the languages of a step."""
        languages, number = self._draws.languages(np.array([step]))
        return languages[0, : number[0]]

    def _batch(self, step: int, drawn: npt.NDArray[np.int64], before: npt.NDArray[np.int64]) -> dict[str, Any]:
        allowed = np.unique(np.concatenate([self._ids[language] for language in drawn]))
        packs = []
        first = self._rank * self._batch_size
        for position in range(first, first + self._batch_size):
            language = int(drawn[position % drawn.size])
            pack = self._pack(language, int(before[language]) + position // drawn.size)
            packs.append(pack)
            self._refuse_foreign(language, pack, step)
        return {**self._collate(packs), "allowed_ids": torch.from_numpy(allowed)}

    def _pack(self, language: int, place: int) -> Pack:
        """The pack at a place of the language's endless order."""
        dataset = self._datasets[language]
        epoch, within = divmod(place, len(dataset))
        if self._orders.get(language, (-1,))[0] != epoch:
            key = f"{self._seed}/{self.languages[language]}/{epoch}"
            self._orders[language] = epoch, permuted(len(dataset), key.encode())
        return dataset[int(self._orders[language][1][within])]

    def _refuse_foreign(self, language: int, pack: Pack, step: int) -> None:
        own = self._ids[language]
        places = np.minimum(np.searchsorted(own, pack.tokens), own.size - 1)
        foreign = own[places] != pack.tokens
        if foreign.any():
            raise InputError(
                f"{self._datasets[language].prefix} holds id {pack.tokens[foreign][0]} (step {step}), which the "
                f"sub-tokenizer of {self.languages[language]!r} does not give: make its shards with "
                "`encode_by_language: true`"
            )
