"""`tokpack verify` of encoded multimodal files: modes are held against the placeholder, for `encode` and `merge`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import EOD, tokpack
from tests.test_verify_faults import set_token, sign_again
from tokpack_core.commands.verify import verify_target
from tokpack_core.megatron.indexed_dataset import read_index, write_index

DOCUMENTS = [
    [("text", "a bridge in the fog"), (56, 84), (84, 56), ("text", "from below")],
    [(112, 56)],
    [("text", "no image here")],
]
"""In text or in width and height; 28 x 28 pixels are a token, so the images have 6, 6 and 8."""


def lines(documents: list[list[tuple[object, object]]]) -> str:
    rows = []
    for number, blocks in enumerate(documents):
        content = [
            {"type": "text", "text": second} if first == "text" else {"type": "image", "width": first, "height": second}
            for first, second in blocks
        ]
        rows.append(json.dumps({"id": str(number), "content": content}) + "\n")
    return "".join(rows)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("modes")
    (root / "pages.jsonl").write_text(lines(DOCUMENTS), encoding="utf-8")
    (root / "text.txt").write_text("a bridge in the fog seen from below " * 9, encoding="utf-8")
    (root / "set").mkdir()
    roles = ("--special-token", f"eod={EOD}", "--special-token", "image=<|image|>")
    tokpack(root, "train", "--family", "byte_bpe", "--vocab-size", "280", *roles, "--output", "tok", "text.txt")
    vision = ("--content-field", "content", "--vision", "qwen2_5_vl", "--append-eod")
    tokpack(root, "encode", "--tokenizer", "tok", *vision, "--output", "set/enc", "pages.jsonl")
    shutil.copytree(root / "set", root / "two")
    tokpack(root, "merge", "set/merged", "set/enc", "two/enc")
    return root / "set"


def modes_of(folder: Path, name: str, change: Callable[[np.ndarray], np.ndarray | None]) -> None:
    path = folder / f"{name}.idx"
    index = read_index(path)
    assert index.modes is not None
    modes = change(index.modes.copy())
    write_index(folder / "new.idx", index.dtype, index.sequence_lengths.copy(), index.document_indices.copy(), modes)
    (folder / "new.idx").replace(path)


def with_mode(place: int, mode: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(modes: np.ndarray) -> np.ndarray:
        modes[place] = mode
        return modes

    return change


def token_of_an_image(folder: Path, name: str) -> None:
    index = read_index(folder / f"{name}.idx")
    set_token(folder / name, int(index.sequence_pointers[1]) // 2 + 2, 99)


def joined_images(folder: Path, name: str) -> None:
    index = read_index(folder / f"{name}.idx")
    lengths, modes = index.sequence_lengths.tolist(), index.modes.tolist()
    lengths[1:3], modes[1:3] = [lengths[1] + lengths[2]], [1]
    documents = [edge - (edge > 1) for edge in index.document_indices.tolist()]
    write_index(folder / "new.idx", index.dtype, np.array(lengths), np.array(documents), np.array(modes, np.int8))
    (folder / "new.idx").replace(folder / f"{name}.idx")


FAULTS: dict[str, tuple[Callable[[Path, str], None], str]] = {
    "an image whose mode is text": (
        lambda folder, name: modes_of(folder, name, with_mode(1, 0)),
        "sequence 1 is text by its mode, but holds the placeholder 1",
    ),
    "text whose mode is image": (
        lambda folder, name: modes_of(folder, name, with_mode(0, 1)),
        "sequence 0 is an image by its mode, but holds more than the placeholder 1",
    ),
    "a token of an image": (
        token_of_an_image,
        "sequence 1 is an image by its mode, but holds more than the placeholder",
    ),
    "no modes": (lambda folder, name: modes_of(folder, name, lambda modes: None), "has no modes, but by the manifest"),
    "joined images": (joined_images, "images of .* tokens are in it, but by the manifest"),
}


@pytest.mark.parametrize("name", ["enc", "merged"])
@pytest.mark.parametrize("fault", FAULTS)
def test_modes_that_do_not_fit_the_tokens_are_named(sound: Path, tmp_path: Path, fault: str, name: str) -> None:
    folder = Path(shutil.copytree(sound, tmp_path / "set"))
    index = read_index(folder / f"{name}.idx")
    assert index.modes is not None
    assert index.modes[:6].tolist() == [0, 1, 1, 0, 1, 0]
    assert index.sequence_lengths[[1, 2, 4]].tolist() == [6, 6, 8]
    assert verify_target(str(folder / name), quiet=True).faults == []
    plant, message = FAULTS[fault]
    plant(folder, name)
    sign_again(folder)
    with pytest.raises(AssertionError, match=message):
        raise AssertionError("\n".join(verify_target(str(folder / name), quiet=True).faults))


def test_merged_files_end_in_eod_and_keep_what_is_known_of_images(sound: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(sound, tmp_path / "set"))
    counts = json.loads((folder / "merged.manifest.json").read_bytes())["counts"]
    assert (counts["eod"], counts["vision"]["images"], counts["vision"]["image_tokens"]) == (0, 6, 40)
    index = read_index(folder / "merged.idx")
    set_token(folder / "merged", int(index.sequence_pointers[-1]) // 2 + int(index.sequence_lengths[-1]) - 1, 99)
    sign_again(folder)
    [fault] = verify_target(str(folder / "merged"), quiet=True).faults
    assert "1 of 6 documents do not end in EOD 0" in fault
