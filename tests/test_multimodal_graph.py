"""A generated corpus of text and images through the graph: every position of every pack, and faults found in it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from pydoc_data import topics

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from tests.command_line import refused, tokpack
from tests.small_project import SmallProject
from tests.small_transformer import SmallTransformer, flex, sdpa
from tokpack_assets.metadata import packing_metadata, shards_metadata
from tokpack_core.commands.verify import packs_findings
from tokpack_core.config.vision import VisionConfig
from tokpack_core.corpus.content import read_content
from tokpack_core.errors import ConfigError, InputError
from tokpack_core.megatron.indexed_dataset import read_index, write_index
from tokpack_core.megatron.verify_packs import ExpectedPacks
from tokpack_core.stages.asset import Built
from tokpack_core.stages.export_checks import readable_verdict
from tokpack_core.stages.pack import read_blocks
from tokpack_core.store import objects
from tokpack_core.store.store import open_store
from tokpack_core.tokenizers.encoded import from_lists
from tokpack_core.tokenizers.registry import load
from tokpack_core.training.collators import flatten_visible
from tokpack_core.training.packed_dataset import PackedDataset
from tokpack_core.training.segments import FILL, IMAGE, TEXT, ImageAttention, PackSegments
from tokpack_core.training.visibility import block_mask, dense_mask
from tokpack_core.vision.schemes import image_tokens

CONFIG = """\
corpora:
  pages:
    paths: ["data/*.jsonl"]
    content_field: content
    id_field: id
    splits: {train: 0.8, valid: 0.1, test: 0.1}
  plain:
    paths: ["plain/*.txt"]
    splits: {train: 0.8, valid: 0.1, test: 0.1}
tokenizers:
  bpe:
    family: byte_bpe
    vocab_size: 400
    train_on: {pages: 1}
    special_tokens: {eod: "<|endoftext|>", bos: "<|bos|>", image: "<|image|>"}
    bos: true
    vision: {scheme: qwen2_5_vl, max_pixels: 80000}
    checks: {rare_below: 2, max_rare_token_share: 0.9, min_vocabulary_utilization: 0.1}
datasets:
  mixed:
    tokenizer: bpe
    mixture: {pages: 1, plain: 1}
    packing: {sequence_length: 256, images_per_pack: 3, align: 4}
    image_attention: isolate_images
    checks: {min_packing_utilization: 0.1}
"""
VISION = VisionConfig(scheme="qwen2_5_vl", max_pixels=80_000)
EOD, BOS, PLACEHOLDER = 0, 1, 2
S = 256


@dataclass(frozen=True)
class Pages:
    project: SmallProject
    documents: dict[str, list[dict[str, object]]]
    built: dict[str, Built]

    @property
    def dataset(self) -> Path:
        return self.built["megatron_dataset/mixed"].folder


def generated(seed: int) -> dict[str, list[dict[str, object]]]:
    """Interleaved documents: images in a row, at the ends, alone; long and empty ones."""
    rng = np.random.default_rng(seed)
    pool = " ".join(topics.topics[name] for name in ("lists", "sequences-types", "strings") if name in topics.topics)
    pool = pool or " ".join(sorted(topics.topics.values()))[:50_000]
    documents: dict[str, list[dict[str, object]]] = {"empty": [], "alone": [picture(rng, "only.png")]}
    for number in range(120):
        content: list[dict[str, object]] = []
        for place in range(int(rng.integers(0, 8))):
            if rng.random() < 0.5:
                content.append(picture(rng, f"{number}_{place}.png"))
            else:
                begin = int(rng.integers(0, 5_000))
                text = pool[begin : begin + int(rng.integers(0, 400))]
                content.append({"type": "text", "text": f"{text} <|image|> cafe\u0301"})
        documents[f"page {number}"] = content
    return documents


def picture(rng: np.random.Generator, name: str) -> dict[str, object]:
    width, height = (int(side) for side in rng.integers(10, 3_000, 2))
    return {"type": "image", "width": width, "height": height, "path": name}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    folder = tmp_path_factory.mktemp("pages")
    for name in ("configs", "data", "plain"):
        (folder / name).mkdir()
    (folder / "configs" / "project.yaml").write_text(CONFIG, encoding="utf-8")
    documents = generated(0)
    lines = [json.dumps({"id": name, "content": content}) + "\n" for name, content in documents.items()]
    (folder / "data" / "a.jsonl").write_text("".join(lines[:70]), encoding="utf-8")
    (folder / "data" / "b.jsonl").write_text("".join(lines[70:]), encoding="utf-8")
    for number in range(30):
        (folder / "plain" / f"{number}.txt").write_text(f"plain text {number} " * (number + 1))
    project = SmallProject(folder)
    return Pages(project, documents, project.build())


def tokens_of(image: dict[str, object]) -> int:
    sides = (np.array([image[side]]) for side in ("width", "height"))
    return int(image_tokens(*sides, VISION)[0])


def test_every_image_is_whole_in_one_pack_and_every_document_comes_back(pages: Pages) -> None:
    found: dict[str, list[tuple[int, list[int], list[tuple[int, int]]]]] = {}
    images = 0
    for split in ("train", "valid", "test"):
        prefix = pages.dataset / "pages" / f"{split}_{S}"
        packs = PackedDataset(prefix)
        plan, ids = plan_rows(pages, split)
        for number in range(len(packs)):
            pack = packs[number]
            assert int(np.count_nonzero(pack.segments.mode == IMAGE)) <= 3
            images += int(np.count_nonzero(pack.segments.mode == IMAGE))
            check_pack(pack.tokens, pack.segments)
            for row in plan[number]:
                offset, document, start, length, mode = row
                tokens = pack.tokens[offset : offset + length].tolist()
                assert (mode == IMAGE) == (set(tokens) == {PLACEHOLDER})
                found.setdefault(ids[document], []).append((start, tokens, [(mode, length)]))
    for name, content in pages.documents.items():
        pieces = sorted(found.get(name, []))
        tokens = [token for _, piece, _ in pieces for token in piece]
        runs = [run for _, _, runs in pieces for run in runs]
        assert [length for mode, length in runs if mode == IMAGE] == [
            tokens_of(block) for block in content if block["type"] == "image"
        ]
        if not content:
            assert tokens == []
            continue
        assert (tokens[0], tokens[-1]) == (BOS, EOD)
        assert (tokens.count(BOS), tokens.count(EOD)) == (1, 1)
        text = pages_text(pages, [token for token in tokens[1:-1] if token != PLACEHOLDER])
        assert text == "".join(str(b["text"]) for b in content if b["type"] == "text").replace("e\u0301", "é")
    counts = pages.built["tokenized_shards/bpe/pages"].counts["vision"]
    assert images == counts["images"] == sum(b["type"] == "image" for c in pages.documents.values() for b in c)
    assert counts["image_tokens_by_scheme"]["qwen2_5_vl"] == counts["image_tokens"]
    assert counts["image_tokens_by_scheme"]["q_former"] == 32 * images


def plan_rows(pages: Pages, split: str) -> tuple[list[list[tuple[int, int, int, int, int]]], dict[int, str]]:
    """By pack (offset, document, start, length, mode), from the plan alone, and ids of documents by number."""
    store = open_store(pages.project.store)
    packs: list[list[tuple[int, int, int, int, int]]] = []
    ids: dict[int, str] = {}
    for block in read_blocks(pages.built["packed_sequences/mixed"].folder):
        if (block.corpus, block.split) != ("pages", split):
            continue
        first = len(packs)
        base = len(ids)
        numbers: dict[tuple[int, int], int] = {}
        for part, shard in enumerate(block.shards):
            described = pq.read_table(objects.folder_of(store, shard) / "documents.parquet")
            for row, name in enumerate(described["id"].to_pylist()):
                numbers[part, row] = base + len(numbers)
                ids[numbers[part, row]] = name
        packs += [[] for _ in range(block.packs)]
        at = 0
        before: tuple[object, ...] = ()
        for row in pq.read_table(objects.folder_of(store, block.object) / "plan.parquet").to_pylist():
            piece = (row["pack"], row["part"], row["document"], row["chunk"])
            if piece[:1] != before[:1]:
                at = 0
            elif piece != before:
                at += -at % 4
            document = numbers[row["part"], row["document"]]
            packs[first + row["pack"]].append((at, document, row["start"], row["length"], row["mode"]))
            at += row["length"]
            before = piece
    return packs, ids


def check_pack(tokens: np.ndarray, segments: PackSegments) -> None:
    """What fills is EOD, gaps end at multiples of the alignment, runs of one document alternate as they must."""
    at = 0
    before = (FILL, TEXT)
    expected = 0
    for length, mode, document, attention in zip(
        *(getattr(segments, name).tolist() for name in ("length", "mode", "document", "image_attention")), strict=True
    ):
        inside = tokens[at : at + length]
        if document == FILL:
            assert (inside == EOD).all()
            assert at % 4 or at + length == S
        else:
            assert document in (expected, expected - 1)
            expected = document + 1
            assert attention == ImageAttention.ISOLATE_IMAGES
            if before[0] == document:
                assert IMAGE in (before[1], mode)
            else:
                assert at % 4 == 0
        before = (document, mode)
        at += length
    assert at == S


def pages_text(pages: Pages, ids: list[int]) -> str:
    tokenizer = load(pages.built["tokenizer_model/bpe"].folder)
    return str(tokenizer.decode(from_lists([ids]))[0].as_py())


def test_the_ui_shows_what_images_cost(pages: Pages) -> None:
    shown = shards_metadata(pages.built["tokenized_shards/bpe/pages"])
    vision = pages.built["tokenized_shards/bpe/pages"].counts["vision"]
    assert shown["vision_scheme"] == "qwen2_5_vl"
    assert shown["images"] == vision["images"]
    records = shown["image_tokens_by_scheme"].records
    assert {r.data["scheme"]: r.data["tokens"] for r in records} == vision["image_tokens_by_scheme"]
    assert "vision_warnings" not in shown
    packed = packing_metadata(pages.built["packed_sequences/mixed"])
    assert 0 < packed["vision_share"] < shown["vision_share"] < 1
    assert "vision_scheme" not in shards_metadata(pages.built["tokenized_shards/bpe/plain"])
    compared = {record.data["setting"]: record.data for record in packed["compression"].records}
    assert len(compared) == 6
    counts = pages.built["packed_sequences/mixed"].counts["figures"]
    for setting, row in compared.items():
        vision = VisionConfig(scheme="qwen2_5_vl", max_pixels=int(setting.split()[1].replace(",", "")))
        images = [block for content in pages.documents.values() for block in content if block["type"] == "image"]
        sides = (np.array([image[side] for image in images]) for side in ("width", "height"))
        tokens = int(image_tokens(*sides, vision).sum())
        everything = counts["tokens"] - counts["image_tokens"] + tokens
        assert row["image_tokens"] == tokens
        assert row["vision_share"] == pytest.approx(tokens / everything, abs=1e-6)
        assert row["packs_at_least"] == max(-(-everything // S), -(-len(images) // 3))
        assert row["configured"] == (vision == VISION)


def test_text_corpora_of_the_same_dataset_have_no_modes(pages: Pages) -> None:
    plain = pages.dataset / "plain" / f"train_{S}_docs.idx"
    assert read_index(plain).modes is None
    assert read_index(pages.dataset / "pages" / f"train_{S}_docs.idx").modes is not None
    segments = PackedDataset(plain.with_name(f"train_{S}"))[0].segments
    assert segments.causal


def test_the_check_opens_them_with_megatron_core(pages: Pages) -> None:
    found = readable_verdict(pages.dataset, pages.built["megatron_dataset/mixed"].counts, written_now=True)
    assert found.passed
    assert "; megatron-core 0.16.1 opened each" in found.explanation


def test_the_same_bytes_with_two_workers_and_after_a_rebuild(pages: Pages, tmp_path: Path) -> None:
    for name in ("configs", "data", "plain"):
        shutil.copytree(pages.project.folder / name, tmp_path / name)
    again = SmallProject(tmp_path).build(workers=2)
    assert {k: b.entry.object for k, b in again.items()} == {k: b.entry.object for k, b in pages.built.items()}


def test_verify_audit_and_inspect_know_images(pages: Pages) -> None:
    folder, store = pages.project.folder, pages.project.store
    assert tokpack(folder, "verify", "megatron_dataset/mixed", "--json", store=store).json["faults"] == []
    audit = tokpack(folder, "audit", "megatron_dataset/mixed", "--json", store=store).json
    assert (audit["checked"], audit["differing"]) == (audit["documents"], 0)
    prefix = pages.dataset / "pages" / f"train_{S}"
    shown = tokpack(folder, "inspect", prefix, "--pack", "0", "--json", store=store).json
    assert shown["images"] == int(np.count_nonzero(read_index(prefix.with_name(f"{prefix.name}_docs.idx")).modes))
    assert 0 < shown["vision_share"] < 1
    pack = PackedDataset(prefix)[0].segments
    kept = [(s["length"], s["image"], s["filler"]) for s in shown["pack"]["segments"]]
    expected = zip(pack.length.tolist(), (pack.mode == IMAGE).tolist(), (pack.document == FILL).tolist(), strict=True)
    assert kept == list(expected)
    assert {s["image_attention"] for s in shown["pack"]["segments"] if s["image"]} <= {"isolate_images"}
    text = tokpack(folder, "inspect", prefix, "--pack", "0", store=store).out
    assert ("image (isolate_images)" in text) == any(image for _, image, _ in kept)
    assert "who sees whom" in text


def copied(pages: Pages, folder: Path) -> Path:
    """The packs of one split, writable, with an image in a pack's middle."""
    folder.mkdir()
    for file in (pages.dataset / "pages").glob(f"train_{S}*"):
        shutil.copyfile(file, folder / file.name)
    return folder / f"train_{S}"


def change_modes(prefix: Path, change: Callable[[np.ndarray], object]) -> None:
    path = prefix.with_name(f"{prefix.name}_docs.idx")
    index = read_index(path)
    assert index.modes is not None
    modes = index.modes.copy()
    change(modes)
    write_index(path, index.dtype, index.sequence_lengths.copy(), index.document_indices.copy(), modes)


def split_an_image(prefix: Path) -> None:
    path = prefix.with_name(f"{prefix.name}_docs.idx")
    index = read_index(path)
    assert index.modes is not None
    number = int(np.argmax((index.modes == IMAGE) & (index.sequence_lengths > 1)))
    lengths = np.insert(index.sequence_lengths, number, 1)
    lengths[number + 1] -= 1
    documents = index.document_indices + (index.document_indices > number)
    modes = np.insert(index.modes, number, IMAGE)
    rows_path = prefix.with_name(f"{prefix.name}_docs.segments.npy")
    rows = np.load(rows_path)
    np.save(rows_path, np.insert(rows, number, rows[number]))
    write_index(path, index.dtype, lengths, documents, modes)


def change_rows(prefix: Path, change: Callable[[np.ndarray], object]) -> None:
    path = prefix.with_name(f"{prefix.name}_docs.segments.npy")
    rows = np.load(path)
    change(rows)
    np.save(path, rows)


def first_of(modes: np.ndarray, mode: int) -> int:
    return int(np.argmax(modes == mode))


PLANTED: dict[str, tuple[Callable[[Path], object], str]] = {
    "an image marked as text": (
        lambda prefix: change_modes(prefix, lambda modes: modes.__setitem__(first_of(modes, IMAGE), TEXT)),
        "holds the placeholder 2 of images",
    ),
    "text marked as an image": (
        lambda prefix: change_modes(prefix, lambda modes: modes.__setitem__(first_of(modes, TEXT), IMAGE)),
        "holds more than the placeholder",
    ),
    "a cut image": (split_an_image, "images are in its packs, but .* by the manifest"),
    "no segments": (
        lambda prefix: prefix.with_name(f"{prefix.name}_docs.segments.npy").unlink(),
        "has images, but .*segments.npy.* is missing",
    ),
    "documents out of order": (
        lambda prefix: change_rows(prefix, lambda rows: rows["document"].__setitem__(0, 7)),
        "row 0 does not number the documents",
    ),
    "an unknown attention": (
        lambda prefix: change_rows(prefix, lambda rows: rows["image_attention"].__setitem__(1, 9)),
        "row 1 does not number the documents of its pack",
    ),
    "rows of another index": (
        lambda prefix: np.save(
            prefix.with_name(f"{prefix.name}_docs.segments.npy"),
            np.load(prefix.with_name(f"{prefix.name}_docs.segments.npy"))[:-1],
        ),
        "its index has .* sequences",
    ),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_planted_faults_of_images_are_named(pages: Pages, tmp_path: Path, fault: str) -> None:
    prefix = copied(pages, tmp_path / "copy")
    counts = pages.built["megatron_dataset/mixed"].counts["prefixes"][f"pages/train_{S}"]
    expected = ExpectedPacks(
        S, EOD, 4, counts["padding"], counts["continued_pieces"], PLACEHOLDER, counts["images"], counts["image_tokens"]
    )
    assert packs_findings(prefix, 400, expected).faults == []
    plant, message = PLANTED[fault]
    plant(prefix)
    found = packs_findings(prefix, 400, expected).faults
    with pytest.raises(AssertionError, match=message):
        raise AssertionError("\n".join(found))


@pytest.mark.parametrize("backend", ["sdpa", "flex"])
def test_no_document_of_an_exported_pack_sees_another(pages: Pages, backend: str) -> None:
    """The stored segments of the graph's own packs, through the collator, keep a transformer's documents apart."""
    packs = PackedDataset(pages.dataset / "pages" / f"train_{S}")
    number = max(range(len(packs)), key=lambda n: len(set(packs[n].segments.document)) * packs[n].segments.mode.any())
    batch = flatten_visible([packs[number]])
    seen = batch["visibility"]
    attention = sdpa(dense_mask(seen)) if backend == "sdpa" else flex(block_mask(seen))
    model = SmallTransformer(S)

    def logits(tokens: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return model(tokens % 128, batch["position_ids"], attention)

    segments = packs[number].segments
    document = np.repeat(segments.document, segments.length)
    before = logits(batch["input_ids"])
    for changed in np.unique(document[document != FILL]):
        tokens = batch["input_ids"].clone()
        tokens[0, document == changed] += 1
        moved = (logits(tokens) - before).abs().amax(dim=(0, 2)).numpy()
        assert (moved[document == changed] > 0).all()
        assert (moved[document != changed] == 0).all()


def test_configurations_that_cannot_work_are_told(pages: Pages, tmp_path: Path) -> None:
    faults = {
        ("    vision: {scheme: qwen2_5_vl, max_pixels: 80000}\n", ""): "corpus `pages` has images, and tokenizer `bpe`",
        (', image: "<|image|>"', ""): "`vision` needs the placeholder of images",
        ("images_per_pack: 3,", "strategy: concat,"): "strategy concat would cut the images of corpus `pages`",
        ("images_per_pack: 3,", "min_chunk: 8,"): "min_chunk would cut the images of corpus `pages`",
        ("max_pixels: 80000", "latents: 5"): "latents is no parameter of scheme qwen2_5_vl",
        ("max_pixels: 80000", "max_pixel: 5"): "did you mean `max_pixels`",
        ("isolate_images", "isolate"): "isolate_images",
    }
    for number, ((old, new), said) in enumerate(faults.items()):
        configs = tmp_path / str(number) / "configs"
        configs.mkdir(parents=True)
        assert old in CONFIG
        (configs / "a.yaml").write_text(CONFIG.replace(old, new))
        with pytest.raises(ConfigError, match=said.replace("(", r"\(")):
            SmallProject(configs.parent).load()


def test_the_example_of_the_documentation_is_valid(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "images.md").read_text(encoding="utf-8")
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "a.yaml").write_text(page.split("```yaml\n")[1].split("```")[0], encoding="utf-8")
    project = SmallProject(tmp_path).load()
    assert project.tokenizers["multimodal_32k"].vision == VisionConfig(scheme="qwen2_5_vl", max_pixels=1_003_520)
    example = json.loads(page.split("```json\n")[1].split("```")[0])
    text, blocks = read_content(example["content"], "content")
    assert text == "A bridge in the fog.The same from below."
    assert [(b["mode"], b["width"], b["height"], b["image"]) for b in blocks if b["mode"]] == [
        (1, 1024, 768, "images/0001.jpg")
    ]


def test_an_image_that_a_scheme_refuses_or_that_fills_no_pack(pages: Pages, tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "data").mkdir()
    config = CONFIG.replace(", plain: 1", "")
    config = config[: config.index("  plain:")] + config[config.index("tokenizers:") :]
    (tmp_path / "configs" / "project.yaml").write_text(config)
    wide = {"type": "image", "width": 30_000, "height": 28, "path": "wide.png"}
    content = [{"type": "text", "text": "some text " * 30}, wide, {"type": "text", "text": "more"}]
    lines = [{"id": str(n), "content": [{"type": "text", "text": f"page {n} " * 20}]} for n in range(40)]
    rows = [*lines, {"id": "wide", "content": content}, {"id": "only", "content": [wide]}]
    (tmp_path / "data" / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    project = SmallProject(tmp_path)
    with pytest.raises(InputError, match=r"a.jsonl, row 41: scheme qwen2_5_vl refuses .* 30000 x 28"):
        project.build()
    project.edit("max_pixels: 80000", "max_pixels: 80000, refused_images: drop")
    built = project.build()
    vision = built["tokenized_shards/bpe/pages"].counts["vision"]
    assert (vision["images"], vision["images_refused"]) == (0, 2)
    assert built["tokenized_shards/bpe/pages"].counts["empty_documents"] == 1

    project.edit("scheme: qwen2_5_vl, max_pixels: 80000, refused_images: drop", "scheme: vit_patches")
    with pytest.raises(InputError, match=r"images have more tokens than a pack of 256, .* 576"):
        project.build()
    project.edit("images_per_pack: 3,", "images_per_pack: 3, large_images: drop,")
    figures = project.build()["packed_sequences/mixed"].counts["figures"]
    assert (figures["dropped_images"], figures["dropped_image_tokens"], figures["tokens_lost"]) == (2, 1152, 0)


def test_the_same_by_stand_alone_commands(pages: Pages, tmp_path: Path) -> None:
    tokenizer = pages.built["tokenizer_model/bpe"].folder
    data = [pages.project.folder / "data" / name for name in ("a.jsonl", "b.jsonl")]
    shape = ["--content-field", "content", "--vision", "qwen2_5_vl", "--vision-parameter", "max_pixels=80000"]
    tokpack(tmp_path, "encode", "--tokenizer", tokenizer, "--append-eod", *shape, "--output", "pages", *data)
    limits = ["--images-per-pack", "3", "--align", "4", "--image-attention", "isolate_modalities"]
    packing = ["--sequence-length", str(S), "--eod", str(EOD), *limits]
    manifest = tokpack(tmp_path, "pack", *packing, "--output", "packed", "pages", "--json").json
    counts = manifest["counts"]
    total = sum(block["type"] == "image" for content in pages.documents.values() for block in content)
    assert counts["packed_images"] == counts["images"] == counts["vision"]["images"] == total
    assert counts["packed_image_tokens"] == counts["vision"]["image_tokens_by_scheme"]["qwen2_5_vl"]
    assert counts["tokens_lost"] == 0
    assert tokpack(tmp_path, "verify", "packed", "--json").json["faults"] == []
    packs = PackedDataset(tmp_path / "packed")
    images = sum(int(np.count_nonzero(packs[n].segments.mode)) for n in range(len(packs)))
    assert images == total
    attentions = {int(a) for n in range(len(packs)) for a in packs[n].segments.image_attention}
    assert attentions == {ImageAttention.ISOLATE_MODALITIES}
    plan = pq.read_table(tmp_path / "packed_plan.parquet")
    assert int(np.count_nonzero(plan["mode"].to_numpy())) == total
    number = next(n for n in range(len(packs)) if packs[n].segments.mode.any())
    assert "image (isolate_modalities)" in tokpack(tmp_path, "inspect", "packed", "--pack", str(number)).out
    assert "need both" in refused(tmp_path, "encode", "--tokenizer", tokenizer, *shape[2:], "--output", "x", *data)
    fixed = ["--content-field", "content", "--vision", "q_former", "--vision-parameter", "latents=8"]
    told = tokpack(tmp_path, "encode", "--tokenizer", tokenizer, *fixed, "--output", "fixed", *data).out
    assert "note: fixed-latent schemes" in told
    said = refused(
        tmp_path,
        "encode",
        "--tokenizer",
        tokenizer,
        *shape[:4],
        "--vision-parameter",
        "latents=3",
        "--output",
        "x",
        *data,
    )
    assert "latents is no parameter of scheme qwen2_5_vl" in said
    wide = {"content": [{"type": "image", "width": 30_000, "height": 28}]}
    (tmp_path / "wide.jsonl").write_text(json.dumps(wide) + "\n")
    said = refused(tmp_path, "encode", "--tokenizer", tokenizer, *shape, "--output", "x", *data, "wide.jsonl")
    assert f"{tmp_path / 'wide.jsonl'}, row 1: scheme qwen2_5_vl refuses" in said
