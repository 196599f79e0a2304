"""What no entry of the configuration can tell alone: names that exist, and one unicode form for a tokenizer's text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tokpack_core.config import Project, UnicodeForm
from tokpack_core.config.families import BASES, Family
from tokpack_core.config.faults import Entry, Faults, line_of, nearest
from tokpack_core.config.project import AUTOMATION_SENSOR, SOURCE_SENSOR
from tokpack_core.config.tokenizers import TokenizerConfig

UNICODE_FORMS: tuple[UnicodeForm, ...] = ("none", "nfc", "nfkc")
"""Each also gives what the ones before it give."""
NO_BASE_FOR: dict[Family, tuple[str, ...]] = {"litetoken": (".model",), "supertokens": (".model", ".tiktoken")}
"""Endings of published files that these families do not take."""


def check_agreement(entry: Entry, project: Project, names: Mapping[str, Sequence[str]], faults: Faults) -> None:
    """Checks an entry without faults against the others.

    Args:
        project: the entries without faults; what hangs on another one is checked when that one is mended.
        names: of all entries, by section.
    """
    if entry.section == "tokenizers":
        shares = project.tokenizers[entry.name].train_on or {}
        check_names(entry, ("train_on",), shares, names["corpora"], "corpus", faults)
        if all(name in project.corpora for name in shares):
            check_unicode_forms(entry, project, faults)
            check_domains(entry, project, faults)
        check_base(entry, project, names["tokenizers"], faults)
    elif entry.section == "datasets":
        dataset = project.datasets[entry.name]
        check_names(entry, ("tokenizer",), [dataset.tokenizer], names["tokenizers"], "tokenizer", faults)
        check_names(entry, ("mixture",), dataset.mixture, names["corpora"], "corpus", faults)
        if dataset.tokenizer in project.tokenizers and all(name in project.corpora for name in dataset.mixture):
            check_mixture_forms(entry, project, faults)
            check_images(entry, project, faults)
        check_step_names(entry, project, faults)
    elif entry.section == "schedules" and entry.name in (AUTOMATION_SENSOR, SOURCE_SENSOR):
        faults.add(
            entry.file, entry.line, f"{entry.where}: `{entry.name}` is the name of a sensor; rename the schedule"
        )


def check_step_names(entry: Entry, project: Project, faults: Faults) -> None:
    """Dagster joins tokenizer and corpus with two underscores, by which two pairs may get one name."""
    own = project.datasets[entry.name]
    steps = {f"{tokenizer}__{corpus}": (tokenizer, corpus) for tokenizer, corpus in project.encoded_pairs()}
    for corpus in own.mixture:
        tokenizer, other = steps[f"{own.tokenizer}__{corpus}"]
        if (tokenizer, other) != (own.tokenizer, corpus):
            line = line_of(entry.node, ("mixture", corpus)) or entry.line
            faults.add(
                entry.file,
                line,
                f"{entry.where}.mixture: shards of `{corpus}` by `{own.tokenizer}` and of `{other}` by `{tokenizer}` "
                "would have one name in Dagster; rename one so that it has no two underscores in a row",
            )


def check_names(
    entry: Entry, path: tuple[str, ...], names: Iterable[str], known: Sequence[str], kind: str, faults: Faults
) -> None:
    for name in (name for name in names if name not in known):
        line = line_of(entry.node, (*path, name)) or entry.line
        faults.add(entry.file, line, f"{entry.where}.{path[0]}: there is no {kind} `{name}`{nearest(name, known)}")


def check_base(entry: Entry, project: Project, known: Sequence[str], faults: Faults) -> None:
    base = project.tokenizers[entry.name].base
    if base is None:
        return
    line = line_of(entry.node, ("base",)) or entry.line
    if base not in known:
        faults.add(entry.file, line, f"{entry.where}.base: there is no tokenizer `{base}`{nearest(base, known)}")
    elif entry.name in project.ancestors(entry.name):
        circle = " from ".join(f"`{name}`" for name in [entry.name, *project.ancestors(entry.name)])
        faults.add(entry.file, line, f"{entry.where}.base: a circle, {circle}; name one that is not made from it")
    elif base in project.tokenizers and (why := unfit(project.tokenizers[entry.name], project.tokenizers[base])):
        faults.add(entry.file, line, f"{entry.where}.base: no {why}; name another tokenizer")


def unfit(made: TokenizerConfig, base: TokenizerConfig) -> str | None:
    """Why nothing of that family can be made from that base; what a tokenizer.json holds is told when it is opened."""
    if base.family not in BASES[made.family]:
        return f"{made.family} can be made from a {base.family}, only from {', '.join(BASES[made.family])}"
    if made.family != "minimum_cost" and base.delete_threshold is not None:
        return f"{made.family} can be made from a tokenizer with `delete_threshold`"
    if made.family == "litetoken" and base.family in ("superbpe", "boundless_bpe") and not has_stock_file(base):
        return f"{made.family} can be made from a {base.family} whose file is our own (`export: exact`)"
    ending = Path(base.path or "").suffix
    if ending in NO_BASE_FOR.get(made.family, ()):
        return f"{made.family} can be made from a file in {ending}"
    return None


def has_stock_file(superwords: TokenizerConfig) -> bool:
    """Whether a superword model is written as a tokenizer.json."""
    return superwords.export == "hf" or (superwords.family == "superbpe" and superwords.joins == "pieces")


def check_unicode_forms(entry: Entry, project: Project, faults: Faults) -> None:
    corpora = project.training_corpora(entry.name)
    forms = {corpus: project.corpora[corpus].normalize.unicode for corpus in corpora}
    if len(set(forms.values())) > 1:
        found = ", ".join(f"{corpus}: {form}" for corpus, form in forms.items())
        line = line_of(entry.node, ("train_on",)) or entry.line
        faults.add(
            entry.file, line, f"{entry.where}.train_on: all corpora must have one normalize.unicode, found {found}"
        )


def check_domains(entry: Entry, project: Project, faults: Faults) -> None:
    """Domains of an allocation, where no document can name a language of its own."""
    corpora = {name: project.corpora[name] for name in project.training_corpora(entry.name)}
    if all(corpus.lang_field is None for corpus in corpora.values()):
        languages = {corpus.lang for corpus in corpora.values() if corpus.lang is not None}
        quotas = project.tokenizers[entry.name].quotas()
        kind = "corpus in train_on or language of one"
        check_names(entry, ("allocation",), quotas, sorted({*corpora, *languages}), kind, faults)


def check_mixture_forms(entry: Entry, project: Project, faults: Faults) -> None:
    """A tokenizer of ours gives all text its unicode form; text of a corpus that asks for a weaker one would change."""
    tokenizer = project.datasets[entry.name].tokenizer
    root = [tokenizer, *project.ancestors(tokenizer)][-1]
    corpora = project.training_corpora(root)
    if project.tokenizers[root].family == "pretrained" or any(name not in project.corpora for name in corpora):
        return
    form = project.unicode_form(root)
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


def check_images(entry: Entry, project: Project, faults: Faults) -> None:
    """A corpus with images needs a tokenizer that knows what they become, and packing that does not cut them."""
    dataset = project.datasets[entry.name]
    packing = dataset.packing
    for corpus in dataset.mixture:
        if project.corpora[corpus].content_field is None:
            continue
        line = line_of(entry.node, ("mixture", corpus)) or entry.line
        if project.tokenizers[dataset.tokenizer].vision is None:
            faults.add(
                entry.file,
                line,
                f"{entry.where}.mixture: corpus `{corpus}` has images, and tokenizer `{dataset.tokenizer}` does not "
                "say how many tokens they become; give it `vision: {scheme: ...}`",
            )
        if packing.strategy == "concat" or packing.min_chunk > 1:
            key = "strategy concat" if packing.strategy == "concat" else "min_chunk"
            faults.add(
                entry.file,
                line,
                f"{entry.where}.packing: {key} would cut the images of corpus `{corpus}`; "
                + ("take another strategy" if packing.strategy == "concat" else "remove it"),
            )
