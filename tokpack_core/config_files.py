"""Reads the configuration folder: every `.yaml` file in it, names unique across files.

All faults are gathered into one ConfigError, a line each: file, line, key, what is wrong and the nearest right key.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from tokpack_core.config import CorpusConfig, DatasetConfig, Project, ScheduleConfig, TokenizerConfig, UnicodeForm
from tokpack_core.errors import ConfigError

NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")
UNICODE_FORMS: tuple[UnicodeForm, ...] = ("none", "nfc", "nfkc")
"""Each also gives what the ones before it give."""
SECTIONS: dict[str, type[BaseModel]] = {
    "corpora": CorpusConfig,
    "tokenizers": TokenizerConfig,
    "datasets": DatasetConfig,
    "schedules": ScheduleConfig,
}


@dataclass(frozen=True)
class Entry:
    """One named entry of a section and where it stands."""

    file: Path
    section: str
    name: str
    node: Any
    line: int

    @property
    def where(self) -> str:
        return f"{self.section}.{self.name}"


@dataclass
class Faults:
    found: list[tuple[Path, int, str]] = field(default_factory=list)

    def add(self, file: Path, line: int, message: str) -> None:
        self.found.append((file, line, message))

    def stop(self) -> None:
        if self.found:
            raise ConfigError("\n".join(f"{file}:{line}: {message}" for file, line, message in sorted(self.found)))


def load_project(folder: Path) -> Project:
    """Reads and checks every configuration file in `folder`.

    Raises:
        ConfigError: with a line for every fault found.
    """
    files = sorted(p for p in folder.glob("*") if p.suffix in (".yaml", ".yml")) if folder.is_dir() else []
    if not files:
        raise ConfigError(
            f"{folder}: no configuration found; put a .yaml file with corpora, tokenizers and datasets there, "
            "or name another folder in TOKPACK_CONFIGS"
        )
    faults = Faults()
    entries = [entry for file in files for entry in read_entries(file, faults)]
    report_duplicates(entries, faults)
    faults.stop()
    models = {(e.section, e.name): validate(e, faults) for e in entries}
    faults.stop()
    project = Project(folder.resolve().parent, *(section_models(models, section) for section in SECTIONS))
    for entry in entries:
        check_agreement(entry, project, faults)
    faults.stop()
    return project


def section_models(models: dict[tuple[str, str], Any], section: str) -> dict[str, Any]:
    return {name: model for (of, name), model in sorted(models.items()) if of == section}


def read_entries(file: Path, faults: Faults) -> Iterator[Entry]:
    try:
        document = YAML(typ="rt").load(file.read_text(encoding="utf-8"))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = " ".join(str(error.problem or error.context or "not valid YAML").split())
        faults.add(file, line, f"not valid YAML: {problem}")
        return
    except (YAMLError, UnicodeDecodeError, OSError) as error:
        faults.add(file, 1, f"cannot be read: {' '.join(str(error).split())}")
        return
    if document is None:
        return
    if not isinstance(document, CommentedMap):
        faults.add(file, 1, f"expected the sections {', '.join(SECTIONS)}, found a {type(document).__name__}")
        return
    for section, body in document.items():
        yield from section_entries(file, document, section, body, faults)


def section_entries(file: Path, document: CommentedMap, section: Any, body: Any, faults: Faults) -> Iterator[Entry]:
    line = line_of(document, (section,))
    if section not in SECTIONS:
        faults.add(file, line, f"unknown section `{section}`{nearest(str(section), SECTIONS)}")
    elif body is None:
        return
    elif not isinstance(body, CommentedMap):
        faults.add(file, line, f"`{section}` must map names to settings")
    else:
        for name, node in body.items():
            at = line_of(document, (section, name))
            if isinstance(name, str) and NAME.fullmatch(name):
                yield Entry(file, section, name, node, at)
            else:
                faults.add(
                    file,
                    at,
                    f"the name `{name}` in {section} must match [a-z][a-z0-9_]* and have at most 100 characters",
                )


def report_duplicates(entries: Iterable[Entry], faults: Faults) -> None:
    first: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        other = first.setdefault((entry.section, entry.name), entry)
        if other is not entry:
            faults.add(
                entry.file, entry.line, f"{entry.where} is already defined at {other.file}:{other.line}; rename one"
            )


def validate(entry: Entry, faults: Faults) -> BaseModel | None:
    model = SECTIONS[entry.section]
    if not isinstance(entry.node, CommentedMap):
        faults.add(entry.file, entry.line, f"{entry.where} must be a mapping of settings")
        return None
    try:
        return model.model_validate(plain(entry.node))
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            path = tuple(fault["loc"])
            key = ".".join([entry.where, *map(str, path)])
            line = line_of(entry.node, path) or entry.line
            faults.add(entry.file, line, f"{key}: {explain(fault, model, path)}")
        return None


def explain(fault: Any, model: type[BaseModel], path: tuple[Any, ...]) -> str:
    if fault["type"] == "extra_forbidden":
        return f"unknown key{nearest(str(path[-1]), known_keys(model, path[:-1]))}"
    if fault["type"] == "missing":
        return "this key is required"
    message = fault["msg"].removeprefix("Value error, ")
    message = message.replace("valid tuple", "list").replace("valid dictionary", "map")
    if fault["type"] in ("value_error", "missing") or isinstance(fault["input"], dict | list):
        return message
    suggestion = nearest(str(fault["input"]), re.findall(r"'([^']*)'", message), sentence=True)
    return f"{message}, not {fault['input']!r}{suggestion}"


def known_keys(model: type[BaseModel], path: tuple[Any, ...]) -> list[str]:
    for key in path:
        annotation = model.model_fields[key].annotation if key in model.model_fields else None
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return []
        model = annotation
    return list(model.model_fields)


def nearest(word: str, candidates: Iterable[str], sentence: bool = False) -> str:
    names = list(candidates)
    close = difflib.get_close_matches(word, names, 1, cutoff=0.5)
    if close:
        return f"; did you mean `{close[0]}`?"
    return f"; known: {', '.join(names)}" if names and not sentence else ""


def line_of(node: Any, path: tuple[Any, ...]) -> int:
    """The 1-based line of the deepest key of `path` that exists, 0 if none does."""
    line = 0
    for key in path:
        if isinstance(node, CommentedMap) and key in node:
            line = node.lc.key(key)[0] + 1
        elif isinstance(node, CommentedSeq) and isinstance(key, int) and key < len(node):
            line = node.lc.item(key)[0] + 1
        else:
            break
        node = node[key]
    return line


def plain(node: Any) -> Any:
    """ruamel's containers and scalars as plain Python ones, so that messages show values as the user wrote them."""
    if isinstance(node, dict):
        return {plain(key): plain(value) for key, value in node.items()}
    if isinstance(node, list):
        return [plain(value) for value in node]
    for kind in (bool, int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node


def check_agreement(entry: Entry, project: Project, faults: Faults) -> None:
    """What no entry can tell alone: names that exist, and one unicode form for all text of a tokenizer."""
    if entry.section == "tokenizers":
        shares = project.tokenizers[entry.name].train_on or {}
        if check_names(entry, ("train_on",), shares, project.corpora, "corpus", faults):
            check_unicode_forms(entry, project, faults)
    elif entry.section == "datasets":
        dataset = project.datasets[entry.name]
        known = check_names(entry, ("tokenizer",), [dataset.tokenizer], project.tokenizers, "tokenizer", faults)
        if check_names(entry, ("mixture",), dataset.mixture, project.corpora, "corpus", faults) and known:
            check_mixture_forms(entry, project, faults)


def check_names(
    entry: Entry, path: tuple[str, ...], names: Iterable[str], known: Iterable[str], kind: str, faults: Faults
) -> bool:
    missing = [name for name in names if name not in known]
    for name in missing:
        line = line_of(entry.node, (*path, name)) or entry.line
        faults.add(entry.file, line, f"{entry.where}.{path[0]}: there is no {kind} `{name}`{nearest(name, known)}")
    return not missing


def check_unicode_forms(entry: Entry, project: Project, faults: Faults) -> None:
    corpora = project.training_corpora(entry.name)
    forms = {corpus: project.corpora[corpus].normalize.unicode for corpus in corpora}
    if len(set(forms.values())) > 1:
        found = ", ".join(f"{corpus}: {form}" for corpus, form in forms.items())
        line = line_of(entry.node, ("train_on",)) or entry.line
        faults.add(
            entry.file, line, f"{entry.where}.train_on: all corpora must have one normalize.unicode, found {found}"
        )


def check_mixture_forms(entry: Entry, project: Project, faults: Faults) -> None:
    """A tokenizer of ours gives all text its unicode form; text of a corpus that asks for a weaker one would change."""
    tokenizer = project.datasets[entry.name].tokenizer
    corpora = project.training_corpora(tokenizer)
    if project.tokenizers[tokenizer].family == "pretrained" or any(name not in project.corpora for name in corpora):
        return
    form = project.unicode_form(tokenizer)
    for corpus in project.datasets[entry.name].mixture:
        asked = project.corpora[corpus].normalize.unicode
        if UNICODE_FORMS.index(asked) < UNICODE_FORMS.index(form):
            line = line_of(entry.node, ("mixture", corpus)) or entry.line
            faults.add(
                entry.file,
                line,
                f"{entry.where}.mixture: tokenizer `{tokenizer}` gives all text the form {form}, which would change "
                f"corpus `{corpus}` of normalize.unicode {asked}; use one form for both",
            )
