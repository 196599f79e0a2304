"""Documents of text and image blocks: what is read, what is refused, and what columns say."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.config import CorpusConfig, NormalizeConfig, ReadConfig
from tokpack_core.config.vision import VisionConfig
from tokpack_core.corpus.content import identities, is_image, text_blocks, with_text_blocks
from tokpack_core.corpus.documents import read_documents
from tokpack_core.corpus.problems import Problems
from tokpack_core.errors import InputError
from tokpack_core.stages.normalize import normalized_batch
from tokpack_core.tokenizers.huggingface import interleaved

Content = list[dict[str, Any]]
IMAGE = {"type": "image", "width": 640, "height": 480}


def read(folder: Path, records: list[Any], **options: Any) -> tuple[pa.RecordBatch, Problems]:
    path = folder / "pages.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    problems = Problems()
    settings = ReadConfig(content_field="content", **options)
    batches = list(read_documents(path, "pages.jsonl", settings, problems))
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0], problems


def blocks(*pairs: tuple[str, Any]) -> Content:
    """("text", "...") and ("image", (width, height))."""
    out: Content = []
    for kind, value in pairs:
        if kind == "text":
            out.append({"type": "text", "text": value})
        else:
            out.append({"type": "image", "width": value[0], "height": value[1]})
    return out


def test_text_and_images_in_their_order(tmp_path: Path) -> None:
    named = [{**IMAGE, "id": "a"}, {**IMAGE, "id": 7}, {**IMAGE, "path": "b.png", "url": "c"}, {**IMAGE, "id": None}]
    content = [
        {"type": "text", "text": "é one "},
        *named,
        {"type": "text", "text": ""},
        {"type": "text", "text": "two"},
    ]
    batch, problems = read(
        tmp_path, [{"content": content}, {"content": []}, {"content": "plain"}, {"content": [IMAGE]}]
    )
    assert batch["text"].to_pylist() == ["é one two", "", "plain", ""]
    first = batch["content"].to_pylist()[0]
    assert [(block["mode"], block["bytes"], block["image"]) for block in first] == [
        (0, 7, None),
        (1, 0, "a"),
        (1, 0, "7"),
        (1, 0, "b.png"),
        (1, 0, None),
        (0, 3, None),
    ]
    assert {(block["width"], block["height"]) for block in first if block["mode"]} == {(640, 480)}
    assert text_blocks(batch).to_pylist() == ["é one ", "two", "plain"]
    assert (problems.documents, problems.empty_documents) == (4, 1)


HOSTILE = {
    "null": (None, "content is not a list of blocks"),
    "an object": ({"type": "text"}, "content is not a list of blocks"),
    "a nested list": ([[IMAGE]], "content block is not an object"),
    "a string as block": (["text"], "content block is not an object"),
    "an unknown type": ([{"type": "video", "width": 1, "height": 1}], "content block of unknown type"),
    "no type": ([{"text": "a"}], "content block of unknown type"),
    "a type that is no string": ([{"type": ["image"]}], "content block of unknown type"),
    "null text": ([{"type": "text", "text": None}], "text block without a string"),
    "text that is a number": ([{"type": "text", "text": 5}], "text block without a string"),
    "no width": ([{"type": "image", "height": 1}], "image without a size"),
    "zero height": ([{"type": "image", "width": 1, "height": 0}], "image without a size"),
    "a negative width": ([{"type": "image", "width": -5, "height": 3}], "image without a size"),
    "a fractional width": ([{"type": "image", "width": 5.0, "height": 3}], "image without a size"),
    "a boolean width": ([{"type": "image", "width": True, "height": 3}], "image without a size"),
    "a string as width": ([{"type": "image", "width": "640", "height": 3}], "image without a size"),
    "an endless side": ([{"type": "image", "width": 10**18, "height": 3}], "image without a size"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_content_is_told_or_skipped(tmp_path: Path, name: str) -> None:
    content, reason = HOSTILE[name]
    records = [{"content": [IMAGE]}, {"content": [IMAGE, *content] if isinstance(content, list) else content}]
    with pytest.raises(InputError, match=f"pages.jsonl, line 2: {reason}"):
        read(tmp_path, records)
    batch, problems = read(tmp_path, [*records, {"other": 1}], on_error="skip")
    assert batch.num_rows == 1
    assert problems.skipped == ({reason: 1} | {"content is not a list of blocks": 1 + (reason.endswith("of blocks"))})


def test_a_large_image_is_an_image(tmp_path: Path) -> None:
    batch, _ = read(tmp_path, [{"content": blocks(("image", (10**6, 10**6)))}])
    assert batch["content"].to_pylist()[0][0]["width"] == 10**6


def test_the_limit_of_a_document_counts_its_text(tmp_path: Path) -> None:
    content = blocks(("text", "a" * 60), ("image", (1, 1)), ("text", "é" * 30))
    with pytest.raises(InputError, match="larger than max_document_bytes"):
        read(tmp_path, [{"content": content}], max_document_bytes=119)
    assert read(tmp_path, [{"content": content}], max_document_bytes=120)[0].num_rows == 1


def test_only_json_lines_hold_blocks(tmp_path: Path) -> None:
    for name in ("a.csv", "a.parquet", "a.txt"):
        with pytest.raises(InputError, match="JSON lines only"):
            list(read_documents(tmp_path / name, name, ReadConfig(content_field="content"), Problems()))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(json.dumps({"content": [IMAGE]}).encode()))
    found = list(read_documents(tmp_path / "a.jsonl.gz", "a", ReadConfig(content_field="content"), Problems()))
    assert [batch.num_rows for batch in found] == [1]


texts = st.sampled_from(["", "a", "e\u0301", "\ufeffb", "中文", "x\r\ny", "  "])
contents = st.lists(
    st.one_of(
        texts.map(lambda text: ("text", text)),
        st.tuples(st.integers(1, 9), st.integers(1, 9)).map(lambda size: ("image", size)),
    ),
    max_size=6,
).map(lambda pairs: blocks(*pairs))


@settings(max_examples=60, deadline=None)
@given(st.lists(contents, min_size=1, max_size=6), st.integers(0, 3))
def test_blocks_are_normalized_each_by_itself(
    tmp_path_factory: pytest.TempPathFactory, documents: list[Content], first: int
) -> None:
    folder = tmp_path_factory.mktemp("content")
    batch, _ = read(folder, [{"content": content} for content in documents])
    batch = batch.slice(min(first, batch.num_rows - 1))
    documents = documents[min(first, len(documents) - 1) :]
    config = CorpusConfig(paths=["x"], content_field="content", normalize=NormalizeConfig(line_ends="lf"))
    normalized, _ = normalized_batch(batch, "x", config)
    expected = [
        [
            block["text"].removeprefix("\ufeff").replace("e\u0301", "é").replace("\r\n", "\n")
            for block in content
            if block["type"] == "text" and block["text"]
        ]
        for content in documents
    ]
    assert text_blocks(normalized).to_pylist() == [text for document in expected for text in document]
    assert normalized["text"].to_pylist() == ["".join(document) for document in expected]
    for content, found in zip(documents, normalized["content"].to_pylist(), strict=True):
        sizes = [(block["width"], block["height"]) for block in content if block["type"] == "image"]
        assert [(block["width"], block["height"]) for block in found if block["mode"]] == sizes
    again, cut = with_text_blocks(normalized["content"], text_blocks(normalized))
    assert again.equals(normalized["text"])
    assert cut.equals(normalized["content"])


@pytest.mark.parametrize("most", [1, 23 * 17, 1_000, 10**9])
def test_batches_of_many_image_tokens_are_cut_between_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(interleaved, "MOST_IMAGE_TOKENS", most)
    vision = VisionConfig(scheme="qwen2_5_vl")  # 23 x 17 tokens of each image
    counts = [0, 1, 0, 5, 1, 1, 1, 0, 0, 2]
    batch, _ = read(tmp_path, [{"content": [IMAGE] * count} for count in counts])
    cut = list(interleaved.bounded_batches([batch], vision))
    assert pa.Table.from_batches(cut).equals(pa.Table.from_batches([batch]))
    for part in cut:
        images = int(np.count_nonzero(is_image(part["content"])))
        assert images * 23 * 17 <= most or len(part) == 1
    assert len(cut) == {1: 9, 391: 6, 1_000: 5, 10**9: 1}[most]
    assert [part.num_rows for part in interleaved.bounded_batches([batch], None)] == [10]


def test_ids_tell_images_and_cuts_apart(tmp_path: Path) -> None:
    different = [
        blocks(("text", "ab")),
        blocks(("text", "a"), ("text", "b")),
        blocks(("text", "ab"), ("image", (1, 2))),
        blocks(("image", (1, 2)), ("text", "ab")),
        blocks(("text", "ab"), ("image", (2, 1))),
        [*blocks(("text", "ab")), {**IMAGE, "width": 1, "height": 2, "id": "x"}],
        [*blocks(("text", "ab")), {**IMAGE, "width": 1, "height": 2, "id": "y"}],
        blocks(("text", "ab"), ("image", (1, 2)), ("image", (1, 2))),
        [{**IMAGE, "id": ";0:0:0"}],
        [{**IMAGE, "id": ""}, {**IMAGE, "id": "0"}],
    ]
    batch, _ = read(tmp_path, [{"content": content} for content in [*different, *different]])
    found = identities(batch["text"], batch["content"]).to_pylist()
    assert len(set(found)) == len(different)
    assert found[: len(different)] == found[len(different) :]
    assert np.count_nonzero(is_image(batch["content"])) == 2 * 10
