"""`tokpack config`: a schema that agrees with what is read, and a check that tells everything at once."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from tests.command_line import refused, tokpack
from tests.dagster_server import environment
from tests.small_project import CONFIG, SmallProject, write_small_project
from tests.test_config import GOOD
from tokpack_core.commands.config_schema import config_schema
from tokpack_core.config.files import load_config

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = {
    **{path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "configs").glob("*.yaml"))},
    "README": "".join(re.findall(r"```yaml\n(.*?)```", README, re.S)[:1]),
    "small project": CONFIG,
    "sizes and schedules": GOOD + 'schedules:\n  nightly: {cron: "0 3 * * *", timezone: Asia/Shanghai}\n',
    "empty": "corpora:\n",
    "engine": "engine: ray\n",
    "engine with an address": 'engine: {name: ray, address: "10.0.0.1:6379"}\n',
}


@pytest.fixture(scope="module")
def validator(tmp_path_factory: pytest.TempPathFactory) -> Draft7Validator:
    schema = tokpack(tmp_path_factory.mktemp("schema"), "config", "schema").json
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)


def parse(text: str) -> Any:
    return YAML(typ="safe").load(text)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_schema_takes_what_is_right(validator: Draft7Validator, name: str) -> None:
    assert [error.message for error in validator.iter_errors(parse(EXAMPLES[name]))] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    lang: zh", "    langs: zh"),
        ("    lang: zh", "    normalize: {unicode: nfcc}"),
        ("family: byte_bpe", "family: byte_bp"),
        ("vocab_size: 32000", "vocab_size: many"),
        ("sample_bytes: 2GB", "sample_bytes: 2 pounds"),
        ("sequence_length: 4096", "sequence_length: 0"),
        ("  base_4k:", "  Base_4k:"),
        ("datasets:", "dataset:"),
        ("    paths: [data/en]", "    lang: en"),
        ("    paths: [data/en]", "    paths: data/en"),
        ("    train_on: {zh_web: 3, en_web: 1}\n", ""),
        ("datasets:", "engine: slurm\ndatasets:"),
    ],
)
def test_the_schema_refuses_what_is_wrong(validator: Draft7Validator, tmp_path: Path, old: str, new: str) -> None:
    """The same that reading the configuration refuses."""
    assert GOOD.count(old) == 1
    text = GOOD.replace(old, new)
    assert list(validator.iter_errors(parse(text)))
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    assert load_config(tmp_path).faults.found


def test_every_key_is_described() -> None:
    """What an editor shows of it."""

    def undescribed(node: Any, path: str) -> Iterator[str]:
        for name, value in node.get("properties", {}).items():
            if "description" not in value:
                yield f"{path}.{name}"

    models = config_schema()["$defs"]
    assert [key for name, model in models.items() for key in undescribed(model, name)] == []


@pytest.fixture
def project(tmp_path: Path) -> SmallProject:
    return write_small_project(tmp_path)


def test_a_right_configuration(project: SmallProject) -> None:
    outcome = tokpack(project.folder, "config", "check")
    assert outcome.out.splitlines()[-1] == "no fault; 13 source files, 10 assets"
    assert tokpack(project.folder, "config", "check", "--json").json["corpora"] == ["code", "docs"]
    assert not project.store.exists()


def test_all_faults_are_told_at_once(project: SmallProject) -> None:
    """A wrong value, a name that is nowhere, a folder that is missing, and a second file with the same name."""
    project.edit("vocab_size: 600", "vocab_size: many")
    project.edit("docs: 2.0", "dogs: 2.0")
    project.edit("paths: [data/code]", "paths: [data/cod]")
    (project.configs / "second.yaml").write_text("corpora:\n  docs: {paths: [data/code]}\n", encoding="utf-8")
    outcome = tokpack(project.folder, "config", "check", may_fail=True)
    assert outcome.code == 1
    one, two = project.configs / "project.yaml", project.configs / "second.yaml"
    assert [line.removeprefix("error: ") for line in outcome.err.splitlines()] == [
        f"{one}:8: corpora.code.paths.0: data/cod: gives no file to read, for there is no "
        f"{project.folder}/data/cod; restore it, or correct the path",
        f"{one}:14: tokenizers.bpe_600.vocab_size: Input should be a valid integer, unable to parse string as an "
        "integer, not 'many'",
        f"{one}:22: datasets.base.mixture: there is no corpus `dogs`; did you mean `docs`?",
        f"{two}:2: corpora.docs is already defined at {one}:2; rename one",
    ]


def test_wrong_schedules_and_pretrained_paths(project: SmallProject) -> None:
    path = project.configs / "more.yaml"
    path.write_text(
        "tokenizers:\n  other:\n    family: pretrained\n    path: models/x.model\n    train_on: {docs: 1}\n",
        encoding="utf-8",
    )
    said = refused(project.folder, "config", "check")
    assert said == f"{path}:4: tokenizers.other.path: there is no {project.folder}/models/x.model; correct it"
    path.write_text(
        'schedules:\n  nightly:\n    cron: "0 3 * * *"\n    assets:\n      - corpus/docs\n      - corpus/dogs\n',
        encoding="utf-8",
    )
    said = refused(project.folder, "config", "check")
    assert said == f"{path}:6: schedules.nightly.assets.1: there is no asset corpus/dogs; did you mean `corpus/docs`?"


def test_all_files_of_a_tokenizer_are_looked_for(project: SmallProject) -> None:
    project.edit("family: byte_bpe", "family: sentencepiece_unigram\n    seed_vocabulary: s.txt\n    parallel: p.jsonl")
    outcome = tokpack(project.folder, "config", "check", may_fail=True)
    file = project.configs / "project.yaml"
    assert [line.removeprefix("error: ") for line in outcome.err.splitlines()] == [
        f"{file}:14: tokenizers.bpe_600.seed_vocabulary: there is no {project.folder}/s.txt; correct it",
        f"{file}:15: tokenizers.bpe_600.parallel: there is no {project.folder}/p.jsonl; correct it",
    ]


def test_errors_for_machines(project: SmallProject) -> None:
    project.edit("vocab_size: 600", "vocab_sice: 600")
    outcome = tokpack(project.folder, "config", "check", "--json", may_fail=True)
    assert "unknown key; did you mean `vocab_size`?" in json.loads(outcome.out)["error"]


def test_dg_finds_no_fault_in_the_definitions(project: SmallProject) -> None:
    """Dagster's own check, as its users run it in this repository."""
    command = [Path(sys.executable).with_name("dg"), "check", "defs"]
    run = subprocess.run(command, cwd=ROOT, env=environment(project), capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert "All definitions loaded successfully." in run.stdout + run.stderr
