"""Imports go down the layers and never up; a capability knows neither store, stages nor engine."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CAPABILITIES = ("corpus", "tokenizers", "bpe", "vocabulary", "comparison", "packing", "megatron", "training", "vision")
GROUND = ("allocator", "available_memory", "config", "errors", "installation", "verdict")
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(GROUND, GROUND),
    **dict.fromkeys(CAPABILITIES, (*GROUND, *CAPABILITIES)),
    "engine": GROUND,
    "threads": GROUND,
    "ray_engine": GROUND,
    "store": GROUND,
    "stages": (*GROUND, *CAPABILITIES, "engine", "threads", "store"),
    "commands": (*GROUND, *CAPABILITIES, "engine", "threads", "store", "stages"),
    "cli": (*GROUND, *CAPABILITIES, "engine", "ray_engine", "store", "stages", "commands"),
}


def imports(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{file}: relative import"
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return found


def files() -> list[Path]:
    return sorted((ROOT / "tokpack_core").rglob("*.py"))


@pytest.mark.parametrize("file", files(), ids=lambda f: f.relative_to(ROOT).as_posix())
def test_core_imports_go_down(file: Path) -> None:
    layer = file.relative_to(ROOT / "tokpack_core").parts[0].removesuffix(".py")
    for name in imports(file):
        root, _, rest = name.partition(".")
        assert root not in ("dagster", "tokpack_assets"), f"{file} imports {name}"
        if root == "tokpack_core" and layer != "__init__":
            target = rest.split(".")[0]
            assert target == layer or target in MAY_IMPORT[layer], f"{file} imports {name}"


def test_every_layer_is_known() -> None:
    layers = {file.relative_to(ROOT / "tokpack_core").parts[0].removesuffix(".py") for file in files()}
    assert layers - {"__init__"} == set(MAY_IMPORT)


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from tokpack_assets import cli; "
        "print([m for m in ('dagster', 'numba', 'numpy', 'pyarrow', 'tokenizers', 'torch') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
