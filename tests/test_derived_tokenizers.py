"""Tokenizers that are made from another one of the configuration, through the whole graph."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.small_project import SmallProject, write_small_project
from tests.test_families_in_graph import LENIENT, STRICT, check
from tests.test_minimum_cost import fewest
from tests.tokenizer_samples import HOSTILE, SPECIAL_TOKENS, documents, train
from tokpack_core.config import TrainConfig
from tokpack_core.config.files import load_project
from tokpack_core.errors import ConfigError, InputError
from tokpack_core.stages.graph import plan_graph
from tokpack_core.store.lineage import read_graph
from tokpack_core.store.store import open_store
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.checked_export import save_checked
from tokpack_core.tokenizers.minimum_cost.tokenizer import fewest_tokens_of
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.residues.litetoken_training import without_residues_of
from tokpack_core.tokenizers.residues.residues import ResidueLimits

DERIVED = f"""\
tokenizers:
  without_residues:
    family: litetoken
    base: bpe_600
    max_residue_ratio: 0.2
    train_on: {{docs: 0.7, code: 0.3}}
    sample_bytes: 200KB
    {LENIENT}
  longer:
    family: supertokens
    base: bpe_600
    top_k: 40
    train_on: {{docs: 1.0}}
    sample_bytes: 100KB
    {LENIENT}
  fewest:
    family: minimum_cost
    base: longer
    train_on: {{docs: 1.0}}
    {LENIENT}
"""


@pytest.fixture
def project(tmp_path: Path) -> SmallProject:
    written = write_small_project(tmp_path)
    written.edit(STRICT, LENIENT)
    (tmp_path / "configs" / "derived.yaml").write_text(DERIVED, encoding="utf-8")
    return written


def tokenizer_of(project: SmallProject, name: str) -> Tokenizer:
    return registry.load(project.build(f"tokenizer_model/{name}")[f"tokenizer_model/{name}"].folder)


@pytest.mark.parametrize("name", ["without_residues", "longer", "fewest"])
def test_every_token_arrives(project: SmallProject, name: str) -> None:
    project.edit("tokenizer: bpe_600", f"tokenizer: {name}")
    check(project, name)


def test_what_they_are_made_from_is_in_graph_and_lineage(project: SmallProject) -> None:
    plans = {plan.key: plan for plan in plan_graph(project.load())}
    key = "tokenizer_model/without_residues"
    assert plans[key].upstream == ("tokenizer_model/bpe_600", "normalized_corpus/code", "normalized_corpus/docs")
    assert plans["tokenizer_model/fewest"].upstream == ("tokenizer_model/longer",)
    built = project.build(key, "tokenizer_model/fewest")
    graph = read_graph(open_store(project.store))
    objects = {name: one.entry.object for name, one in built.items()}
    assert objects["tokenizer_model/bpe_600"] in graph.upstream[objects[key]]
    assert objects["tokenizer_model/longer"] in graph.upstream[objects["tokenizer_model/fewest"]]


def test_ids_that_are_kept_mean_what_they_meant(project: SmallProject) -> None:
    base, cleaned = tokenizer_of(project, "bpe_600"), tokenizer_of(project, "without_residues")
    longer, shortest = tokenizer_of(project, "longer"), tokenizer_of(project, "fewest")
    rows = base.vocabulary().to_pylist()
    assert longer.vocabulary().to_pylist()[: len(rows)] == rows
    assert shortest.vocabulary().equals(longer.vocabulary())
    kept = cleaned.vocabulary().to_pylist()
    assert len(kept) < len(rows)
    assert all(row in rows for row in kept)
    assert base.special_tokens == cleaned.special_tokens == longer.special_tokens == shortest.special_tokens
    texts = pa.array(documents(), pa.string())
    sizes = [one.encode(texts).ids.size for one in (base, longer, shortest)]
    assert sizes == sorted(sizes, reverse=True)
    assert cleaned.decode(cleaned.encode(texts)).equals(base.decode(base.encode(texts)))


def test_figures_of_the_making_are_in_the_manifest(project: SmallProject) -> None:
    built = project.build("tokenizer_model/without_residues", "tokenizer_model/longer")
    cleaned = built["tokenizer_model/without_residues"].counts["training"]
    assert cleaned["residues_removed"] > 0
    assert cleaned["tokens_after"] > cleaned["tokens_before"]
    longer = built["tokenizer_model/longer"]
    assert longer.counts["training"]["tokens_added"] == 40
    assert longer.counts["training"]["tokens_after"] < longer.counts["training"]["tokens_before"]
    assert (longer.folder / "supertokens.json").is_file()


def test_another_base_by_its_configuration_is_made_from_anew(project: SmallProject) -> None:
    before = project.build("tokenizer_model/longer")["tokenizer_model/longer"]
    project.edit("vocab_size: 600", "vocab_size: 500")
    after = project.build("tokenizer_model/longer")["tokenizer_model/longer"]
    assert after.stale is None
    assert before.counts["vocab_size"] == 640
    assert after.counts["vocab_size"] == 540


def test_a_base_that_was_trained_again_makes_it_stale_and_it_is_kept(project: SmallProject) -> None:
    before = project.build("tokenizer_model/longer")["tokenizer_model/longer"]
    old_base = before.made_from["tokenizer_model/bpe_600"]
    for number in range(20):
        more = project.folder / "data" / "code" / f"more_{number}.txt"
        more.write_text(f"def other_words_{number}():\n    return 'quite other words'\n" * 50, encoding="utf-8")
    project.build("normalized_corpus/code")
    base = project.build("tokenizer_model/bpe_600", retrain=True)["tokenizer_model/bpe_600"]
    assert base.entry.object.digest != old_base
    work = project.work()
    kept = next(plan for plan in plan_graph(work.project) if plan.key == "tokenizer_model/longer").build(work)
    assert kept.entry == before.entry
    assert kept.stale == "its base changed since it was trained"
    assert kept.made_from["tokenizer_model/bpe_600"] == old_base


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("base: longer", "base: langer", r"tokenizers\.fewest\.base: there is no tokenizer `langer`.*`longer`"),
        ("top_k: 40", "vocab_size: 700", r"tokenizers\.longer.*has the `vocab_size` of its base"),
        ("    base: longer\n", "", r"tokenizers\.fewest.*needs `base`"),
        ("    base: bpe_600\n    top_k", "    base: fewest\n    top_k", r"base: a circle, `longer` from `fewest` from"),
    ],
)
def test_a_wrong_base_is_told_with_its_line(project: SmallProject, old: str, new: str, told: str) -> None:
    path = project.configs / "derived.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"derived\.yaml:\d+: .*{told}"):
        load_project(project.configs)


def config(family: str, **options: object) -> TrainConfig:
    settings = {"family": family, "vocab_size": 900, "special_tokens": SPECIAL_TOKENS} | options
    return TrainConfig.model_validate(settings)


@pytest.mark.parametrize(
    "base", [config("byte_bpe"), config("byte_bpe", delete_threshold=0.9), config("boundless_bpe"), config("superbpe")]
)
def test_the_fewest_tokens_over_any_byte_level_vocabulary(base: TrainConfig, tmp_path: Path) -> None:
    """By hand for words; ids by Hugging Face tokenizers where a file is saved."""
    trained = train(base, documents())
    found = fewest_tokens_of(trained)
    assert found.vocabulary().to_pylist() == trained.vocabulary().to_pylist()
    assert found.special_tokens == trained.special_tokens
    texts = [*documents()[:20], *HOSTILE]
    encoded, own = found.encode(pa.array(texts, pa.string())), trained.encode(pa.array(texts, pa.string()))
    assert found.decode(encoded).to_pylist() == texts
    assert encoded.ids.size <= own.ids.size
    tokens = set(trained.vocabulary()["token"].to_pylist())
    for word in (" internationalization", "constructor", " return"):
        assert found.encode(pa.array([word])).ids.size == fewest(word.encode(), tokens)
    found.save(tmp_path)
    again = registry.load(tmp_path)
    assert again.family == "minimum_cost"
    assert np.array_equal(again.encode(pa.array(texts, pa.string())).ids, encoded.ids)


@pytest.mark.parametrize("family", ["sentencepiece_bpe", "sentencepiece_unigram"])
def test_the_fewest_pieces_of_sentencepiece(family: str, tmp_path: Path) -> None:
    """By brute force for words; ids by sentencepiece and Hugging Face tokenizers where the files are saved."""
    trained = train(config(family, vocab_size=1500), documents())
    found = fewest_tokens_of(trained)
    assert found.vocabulary().equals(trained.vocabulary())
    assert found.special_tokens == trained.special_tokens
    texts = pa.array([*documents()[:30], *HOSTILE], pa.string())
    encoded = found.encode(texts)
    assert found.decode(encoded).to_pylist() == texts.to_pylist()
    assert encoded.ids.size < trained.encode(texts).ids.size
    rows = trained.vocabulary()
    pieces = set(rows.filter(pc.invert(pc.or_(rows["special"], rows["byte_fallback"])))["token"].to_pylist())
    for word in (" internationalization", " constructor", " representation"):
        assert found.encode(pa.array([word])).ids.size == fewest(word.encode(), pieces)
    compared = save_checked(found, tmp_path, pa.array(documents(), pa.large_string()))
    assert compared["transformers"]["differing_documents"] == 0
    again = registry.load(tmp_path)
    assert again.family == "minimum_cost"
    assert np.array_equal(again.encode(texts).ids, encoded.ids)


def test_residues_that_are_gone_are_named() -> None:
    base = train(config("byte_bpe"), documents())
    limits = ResidueLimits(max_residue_ratio=0.5, max_neighbor_entropy=9.0, min_count=1)
    cleaned = without_residues_of(base, limits, iter([pa.array(documents(), pa.string())]))
    with pytest.raises(InputError, match="litetoken cannot be encoded in the fewest tokens, since its residues"):
        fewest_tokens_of(cleaned)


def test_a_vocabulary_that_is_not_bytes_is_one_sentence() -> None:
    with pytest.raises(InputError, match="wordpiece cannot be encoded in the fewest tokens, since its entries"):
        fewest_tokens_of(train(config("wordpiece"), documents()))
