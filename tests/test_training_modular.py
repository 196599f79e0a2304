"""Batches of sub-tokenizers: seeded, resumable, complete; and a loss that other ids have no part in."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from tests.training_examples import example
from tests.training_sets import EOD, SEQUENCE_LENGTH, write_text_set
from tokpack_core.errors import InputError
from tokpack_core.training.allowed_ids import mask_logits, masked_loss
from tokpack_core.training.language_draws import LanguageDraws, share_of
from tokpack_core.training.modular_batches import ModularBatches
from tokpack_core.training.packed_dataset import Pack, PackedDataset

SIZES = {"en": 40, "fr": 24, "zh": 64}
"""Ids of a language: all below this, but zh lacks 1."""
IDS = {language: [i for i in range(size) if (language, i) != ("zh", 1)] for language, size in SIZES.items()}


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PackedDataset]:
    folder = tmp_path_factory.mktemp("modular")
    for language in ("en", "fr"):
        write_text_set(folder / language, "best_fit" if language == "en" else "naive", SIZES[language])
    return {language: PackedDataset(folder / language, eod=EOD) for language in ("en", "fr")}


def tokens(packs: Sequence[Pack]) -> dict[str, Any]:
    return {"tokens": [pack.tokens.tolist() for pack in packs]}


def batches(datasets: dict[str, PackedDataset], batch_size: int = 3, **options: Any) -> ModularBatches:
    return ModularBatches(datasets, IDS, batch_size, collate=tokens, **options)


def as_lists(found: Any) -> list[Any]:
    return [(batch["tokens"], batch["allowed_ids"].tolist()) for batch in found]


def test_each_pack_once_an_epoch(datasets: dict[str, PackedDataset]) -> None:
    """Over many steps no pack of a language is read more than once oftener than another."""
    counts: dict[str, Counter[tuple[int, ...]]] = {language: Counter() for language in datasets}
    wanted = {
        language: Counter(map(lambda n: tuple(d[n].tokens.tolist()), range(len(d)))) for language, d in datasets.items()
    }
    for batch in batches(datasets, batch_size=4, seed=3, steps=120):
        size = batch["allowed_ids"].numel()
        language = next(name for name in datasets if SIZES[name] == size)
        counts[language].update(map(tuple, batch["tokens"]))
    for language, found in counts.items():
        epochs = [found[pack] // number for pack, number in wanted[language].items()]
        assert set(found) <= set(wanted[language])
        assert max(epochs) - min(epochs) <= 1
        assert max(epochs) >= 2


def test_the_same_from_any_step_on_and_for_any_workers(datasets: dict[str, PackedDataset]) -> None:
    whole = as_lists(batches(datasets, most_languages=2, steps=25))
    assert as_lists(batches(datasets, most_languages=2, start_step=7, steps=25)) == whole[7:]
    loaded = DataLoader(batches(datasets, most_languages=2, steps=25), batch_size=None, num_workers=2)
    assert as_lists(loaded) == whole
    assert as_lists(batches(datasets, most_languages=2, seed=1, steps=25)) != whole
    assert {len(ids) for _, ids in whole} == {SIZES["en"], SIZES["fr"]}


def test_ranks_share_a_step(datasets: dict[str, PackedDataset]) -> None:
    whole = as_lists(batches(datasets, batch_size=6, most_languages=2, steps=9))
    parts = [
        as_lists(batches(datasets, batch_size=2, most_languages=2, rank=rank, ranks=3, steps=9)) for rank in range(3)
    ]
    for step, (packs, ids) in enumerate(whole):
        assert [pack for part in parts for pack in part[step][0]] == packs
        assert all(part[step][1] == ids for part in parts)


@pytest.mark.parametrize(("most", "positions"), [(1, 4), (2, 5), (3, 2), (3, 7)])
def test_draws_are_counted_as_they_are_made(most: int, positions: int) -> None:
    draws = LanguageDraws((1.0, 2.0, 4.0), most, positions, 5)
    counts = np.zeros(3, np.int64)
    for step in range(60):
        np.testing.assert_array_equal(draws.packs_before(step), counts)
        languages, numbers = draws.languages(np.array([step]))
        drawn = languages[0, : numbers[0]].tolist()
        assert len(set(drawn)) == len(drawn)
        for place, language in enumerate(drawn):
            counts[language] += share_of(place, len(drawn), positions)
    assert counts.sum() == 60 * positions


def test_weights_are_chances() -> None:
    languages, _ = LanguageDraws((1.0, 3.0), 1, 1, 0).languages(np.arange(20_000))
    assert abs((languages == 1).mean() - 0.75) < 0.01


def test_other_ids_have_no_part_in_the_loss(datasets: dict[str, PackedDataset]) -> None:
    torch.manual_seed(0)
    embedding, head = torch.nn.Embedding(64, 8), torch.nn.Linear(8, 64)
    batch = next(iter(ModularBatches(datasets, IDS, 2, weights={"en": 1e-9, "fr": 1.0})))
    allowed = batch["allowed_ids"]
    assert allowed.tolist() == IDS["fr"]
    logits = head(embedding(batch["input_ids"]))
    logits.retain_grad()
    loss = masked_loss(logits, batch["labels"], allowed)
    loss.backward()
    others = [token for token in range(64) if token not in IDS["fr"]]
    assert torch.count_nonzero(logits.grad[..., others]) == 0
    assert torch.count_nonzero(head.weight.grad[others]) == 0
    assert torch.count_nonzero(head.bias.grad[others]) == 0
    assert torch.count_nonzero(head.weight.grad[allowed]) > 0
    assert torch.count_nonzero(mask_logits(logits, allowed).softmax(-1)[..., others]) == 0
    few = torch.nn.functional.cross_entropy(logits[0][:, allowed], batch["labels"][0], ignore_index=-100)
    torch.testing.assert_close(loss, few)  # the first ids are allowed, so labels stay what they are


def test_ids_of_other_languages_are_found(datasets: dict[str, PackedDataset], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds id \d+ \(step 0\), which the sub-tokenizer of 'fr' does not give"):
        next(iter(ModularBatches({"fr": datasets["en"]}, IDS, 8)))
    write_text_set(tmp_path / "zh", "best_fit", 64)
    with pytest.raises(InputError, match=r"sub-tokenizer of 'zh' does not give"):
        as_lists(batches({"zh": PackedDataset(tmp_path / "zh", eod=EOD)}, steps=99))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"most_languages": 3}, "cannot share 3 of 2 languages"),
        ({"rank": 1}, "rank 1 of 1"),
        ({"weights": {"en": 1.0}}, "name every language"),
        ({"weights": {"en": 1.0, "fr": 0.0}}, "positive number"),
    ],
)
def test_what_does_not_go_together_is_said(
    datasets: dict[str, PackedDataset], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        batches(datasets, **options)
    with pytest.raises(InputError, match="no language to draw"):
        batches({})
    with pytest.raises(InputError, match="no language 'xx': it has en, fr, zh"):
        batches({"xx": datasets["en"]})


def test_the_example_of_the_documentation(datasets: dict[str, PackedDataset], tmp_path: Path) -> None:
    (tmp_path / "lang_to_ids.json").write_text(str(IDS).replace("'", '"'))
    embedding, head = torch.nn.Embedding(64, 8), torch.nn.Linear(8, 64)
    names = {
        "folder": tmp_path,
        "prefixes": {language: dataset.prefix for language, dataset in datasets.items()},
        "eod": EOD,
        "model": lambda ids, positions: head(embedding(ids)),
    }
    exec(example("Sub-tokenizers"), names)
    assert torch.isfinite(names["loss"])  # type: ignore[call-overload]
    assert SEQUENCE_LENGTH == 32
