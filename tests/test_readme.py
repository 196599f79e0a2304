"""Every command of the README runs, in the demo that the README has the reader build."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dagster_server import dagster_dev
from tests.small_project import SmallProject
from tokpack_core.config.files import load_project

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```bash\n(.*?)```", README, re.S)
SERVES = "tokpack dev"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readme")
    result = run(folder, "tokpack demo --offline --compare")
    assert result.returncode == 0, result.stderr
    assert "needless" in result.stdout
    assert "superbpe against byte_bpe" in " ".join(result.stdout.split())
    return folder / "demo"


def run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    names = ("TOKPACK_CONFIGS", "TOKPACK_STORE", "DAGSTER_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    environment["PATH"] = path
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_the_blocks_are_found() -> None:
    assert len(BLOCKS) >= 5
    assert sum(SERVES in block for block in BLOCKS) == 1


@pytest.mark.parametrize("block", [b for b in BLOCKS if SERVES not in b], ids=lambda b: b.split("\n")[0][:40])
def test_commands(demo: Path, block: str) -> None:
    result = run(demo, block)
    assert result.returncode == 0, result.stderr + result.stdout


def test_the_data_arguments_name_existing_prefixes(demo: Path) -> None:
    block = next(block for block in BLOCKS if "MEGATRON_DATA_ARGUMENTS" in block)
    words = run(demo, block).stdout.split()
    prefixes = [word for word in words if word.startswith("/") and "_4096" in word]
    assert len(prefixes) >= 4
    for prefix in prefixes:
        assert Path(f"{prefix}.bin").is_file()
        assert Path(f"{prefix}.idx").is_file()
    assert words[words.index("--data-cache-path") + 1] == str(demo / "megatron_cache")


def test_the_server_starts(demo: Path) -> None:
    tokpack = str(Path(sys.executable).with_name("tokpack"))
    with dagster_dev(SmallProject(demo), [tokpack, "dev"]) as server:
        assets = server.query("{ assetNodes { assetKey { path } } }")["assetNodes"]
        assert ["megatron_dataset", "demo_4k"] in [asset["assetKey"]["path"] for asset in assets]


def test_the_configuration_of_the_readme_is_valid(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    yaml = re.search(r"```yaml\n(.*?)```", README, re.S)
    assert yaml
    (tmp_path / "configs" / "readme.yaml").write_text(yaml.group(1), encoding="utf-8")
    assert list(load_project(tmp_path / "configs").datasets) == ["base_4k"]


def test_the_configurations_of_the_repository_are_valid() -> None:
    assert load_project(ROOT / "configs").datasets
    recipes = load_project(ROOT / "configs" / "recipes").tokenizers
    assert sorted(f"{config.family} {config.vocab_size}" for config in recipes.values()) == [
        "byte_bpe 32000",
        "byte_bpe 64000",
        "sentencepiece_unigram 32000",
        "sentencepiece_unigram 64000",
    ]


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
