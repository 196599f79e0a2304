"""What a vocabulary is made of: the audit of its entries, whatever the text.

Near-duplicates are entries of whole characters that are equal but for case, for a leading space, or for both. Glitch
candidates are entries of whole characters that text could give and that the sample gives at most once: a model would
hardly train their embeddings (Land and Bartolo 2024). The digit policy is read off from how numbers are cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.residues.residues import USUAL, MergeUse
from tokpack_core.vocabulary.counts import TokenCounts
from tokpack_core.vocabulary.merge_use import merge_use
from tokpack_core.vocabulary.rare_tokens import examples_of, reasons
from tokpack_core.vocabulary.reachability import Reachability, reachability
from tokpack_core.vocabulary.scripts import SCRIPTS
from tokpack_core.vocabulary.token_features import TokenFeatures

EXAMPLES = 20
LONGEST_SHOWN = 30
LONGEST_COUNTED = 32
NUMBERS = ("7", "42", "365", "2026", "31415", "271828", "1234567", " 1234567", "1,234.5", "٢٠٢٦")
LONG_NUMBERS = [str(1_000_000 + 1_234_577 * number % 9_000_000) for number in range(50)]
MARKS = ("unreachable", "residue", "glitch", "duplicate", "reserved", "white", "digits")
"""What a row of the token table may be marked with, as bits from the lowest."""


@dataclass(frozen=True, eq=False)
class Audit:
    """What is known of each row of the vocabulary.

    use: None where merges cannot be watched; why: int8 [rows], index into `rare_tokens.REASONS`; the others:
    bool [rows].
    """

    features: TokenFeatures
    reach: Reachability
    use: MergeUse | None
    residue: NDArray[np.bool_]
    glitch: NDArray[np.bool_]
    duplicate: NDArray[np.bool_]
    why: NDArray[np.int8]

    @property
    def marks(self) -> NDArray[np.int64]:
        """Bits of MARKS of each row."""
        f = self.features
        columns = (self.reach.unreachable, self.residue, self.glitch, self.duplicate, f.reserved, f.white, f.digits)
        return sum((column.astype(np.int64) << bit for bit, column in enumerate(columns)), np.zeros(len(f.ids), int))


def audit(tokenizer: Tokenizer | None, features: TokenFeatures, sample: TokenCounts, test: TokenCounts) -> Audit:
    """Without a tokenizer no token is judged unreachable."""
    frequencies = sample.tokens[features.ids]
    seen = (frequencies + test.tokens[features.ids]) > 0
    nothing = np.zeros(len(seen), bool)
    reach = Reachability(nothing, nothing) if tokenizer is None else reachability(tokenizer, features, seen)
    use = merge_use(tokenizer, sample)
    residue = nothing if use is None else features.entry & use.are_residues()[features.ids]
    whole = (features.kind == 0) & (features.bytes > 0) & ~features.reserved
    glitch = whole & (frequencies <= 1) & ~reach.unreachable if sample.tokens.any() else nothing
    duplicate = in_groups(duplicate_keys(features)["any"])
    why = reasons(features, sample, reach.unreachable, residue)
    return Audit(features, reach, use, residue, glitch, duplicate, why)


def structure(tokenizer: Tokenizer | None, found: Audit, sample: TokenCounts) -> dict[str, Any]:
    """The figures, as `docs/report.md` lists them under `structure`."""
    features = found.features
    frequencies = sample.tokens[features.ids]
    return {
        "unreachable": {
            "entries": int(found.reach.unreachable.sum()),
            "undecided": int(found.reach.undecided.sum()),
            "examples": unreachable_examples(tokenizer, found),
        },
        "residues": residue_figures(found),
        "glitch_candidates": {
            "entries": int(found.glitch.sum()),
            "examples": examples_of(features, found.glitch, features.bytes, EXAMPLES),
        },
        "near_duplicates": near_duplicates(features, frequencies),
        "whitespace": whitespace(features),
        "digits": digits(tokenizer, features),
        "scripts": by_script(features, frequencies),
        "lengths": by_length(features, frequencies),
        "longest": examples_of(features, features.entry, features.bytes, LONGEST_SHOWN),
    }


def unreachable_examples(tokenizer: Tokenizer | None, found: Audit) -> list[dict[str, Any]]:
    """What the text of unreachable tokens gives in their place."""
    features = found.features
    if tokenizer is None:
        return []
    rows = np.flatnonzero(found.reach.unreachable & (features.kind == 0))[:EXAMPLES]
    encoded = tokenizer.encode(features.text.take(pa.array(rows)))
    gives = np.split(encoded.ids, encoded.offsets[1:-1])
    return [{"id": int(features.ids[row]), "gives": ids.tolist()} for row, ids in zip(rows, gives, strict=False)]


def residue_figures(found: Audit) -> dict[str, Any] | None:
    use, features = found.use, found.features
    if use is None:
        return None
    entries, residues = int(features.entry.sum()), int(found.residue.sum())
    met = int((features.entry & (use.met[features.ids] >= USUAL.min_count)).sum())
    rows = examples_of(features, found.residue, use.consumed[features.ids], EXAMPLES)
    return {
        "entries": residues,
        "share": residues / entries,
        "met": met,
        "share_of_met": residues / met if met else None,
        "limits": vars(USUAL),
        "examples": [{"id": i, "final": int(use.final[i]), "consumed": int(use.consumed[i])} for i in rows],
    }


def duplicate_keys(features: TokenFeatures) -> dict[str, pa.Array]:
    """What entries have in common that differ in case, in a leading space, or in either; null for all others."""
    whole = pa.array((features.kind == 0) & ~features.white & (features.bytes > 0))
    text = pc.if_else(whole, features.text, pa.scalar(None, pa.string()))
    bare = pc.replace_substring_regex(text, "^ ", "")
    return {"case": pc.utf8_lower(text), "space": bare, "any": pc.utf8_lower(bare)}


def in_groups(keys: pa.Array) -> NDArray[np.bool_]:
    """bool [rows]: whether another row has the same key."""
    codes = keys.dictionary_encode().indices
    known = pc.is_valid(codes).to_numpy(zero_copy_only=False).astype(bool)
    values = pc.fill_null(codes, 0).to_numpy().astype(np.int64)
    sizes = np.bincount(values[known], minlength=1)
    return known & (sizes[values] > 1)


def near_duplicates(features: TokenFeatures, frequencies: NDArray[np.int64]) -> dict[str, Any]:
    keys = duplicate_keys(features)
    grouped = {name: in_groups(key) for name, key in keys.items()}
    table = pa.table({"key": keys["any"], "id": features.ids, "count": frequencies}).filter(pa.array(grouped["any"]))
    groups = table.group_by("key", use_threads=False).aggregate([("id", "list"), ("count", "sum"), ("count", "min")])
    largest = groups.append_column("size", pc.list_value_length(groups["id_list"]))
    largest = largest.sort_by([("size", "descending"), ("count_sum", "descending"), ("key", "ascending")])
    return {
        "groups": len(groups),
        "entries": int(grouped["any"].sum()),
        "by_case": int(grouped["case"].sum()),
        "by_space": int(grouped["space"].sum()),
        "examples": largest["id_list"].slice(0, EXAMPLES).to_pylist(),
    }


def whitespace(features: TokenFeatures) -> dict[str, Any]:
    white = features.entry & features.white
    spaces = pc.fill_null(pc.match_substring_regex(features.text, "^ +$"), False)
    runs = np.unique(features.characters[white & spaces.to_numpy(zero_copy_only=False).astype(bool)])
    tabs = pc.fill_null(pc.match_substring_regex(features.text, "^\t+$"), False)
    return {
        "entries": int(white.sum()),
        "with_newline": int((features.entry & features.newline).sum()),
        "tabs": int((white & tabs.to_numpy(zero_copy_only=False).astype(bool)).sum()),
        "space_runs": runs.tolist(),
        "leading_space": int((features.entry & features.space).sum()),
        "longest": examples_of(features, white, features.characters, EXAMPLES),
    }


def digits(tokenizer: Tokenizer | None, features: TokenFeatures) -> dict[str, Any]:
    only = features.entry & features.digits
    lengths = np.bincount(np.minimum(features.characters[only] - features.space[only], 9), minlength=10)
    probes = [] if tokenizer is None else [{"text": text, "pieces": pieces_of(tokenizer, text)} for text in NUMBERS]
    return {
        "entries": int(only.sum()),
        "by_digits": lengths[1:].tolist(),
        "policy": None if tokenizer is None else digit_policy([pieces_of(tokenizer, text) for text in LONG_NUMBERS]),
        "probes": probes,
    }


def pieces_of(tokenizer: Tokenizer, text: str) -> list[str]:
    """The text of each token of a text; what is no whole character shows as U+FFFD."""
    ids = tokenizer.encode(pa.array([text])).ids
    return tokenizer.decode(Encoded(ids, np.arange(len(ids) + 1, dtype=np.int64))).to_pylist()


def digit_policy(numbers: Iterable[Sequence[str]]) -> str:
    """How all numbers of seven digits are cut, told from their pieces: merges may cut the groups further."""
    lengths = [[length for piece in pieces if (length := len(piece.strip()))] for pieces in numbers]
    cuts = [set(accumulate(of)) for of in lengths]
    if all(of == [1] * 7 for of in lengths):
        return "single digits"
    if all({3, 6} <= of for of in cuts):
        return "groups of three from the left"
    if all({1, 4} <= of for of in cuts):
        return "groups of three from the right"
    return "left to the merges"


def by_script(features: TokenFeatures, frequencies: NDArray[np.int64]) -> list[dict[str, Any]]:
    entry = features.entry
    script = features.script[entry]
    size = len(SCRIPTS)
    entries = np.bincount(script, minlength=size)
    seen = np.bincount(script[frequencies[entry] > 0], minlength=size)
    occurrences = np.zeros(size, np.int64)
    np.add.at(occurrences, script, frequencies[entry])
    order = [number for number in np.lexsort((np.arange(size), -entries)) if entries[number]]
    return [
        {"script": SCRIPTS[n], "entries": int(entries[n]), "seen": int(seen[n]), "occurrences": int(occurrences[n])}
        for n in order
    ]


def by_length(features: TokenFeatures, frequencies: NDArray[np.int64]) -> list[dict[str, int]]:
    """By bytes; the last row holds all that are longer."""
    entry = features.entry
    length = np.minimum(features.bytes[entry], LONGEST_COUNTED)
    entries = np.bincount(length, minlength=LONGEST_COUNTED + 1)
    occurrences = np.zeros(LONGEST_COUNTED + 1, np.int64)
    np.add.at(occurrences, length, frequencies[entry])
    return [
        {"bytes": size, "entries": int(entries[size]), "occurrences": int(occurrences[size])}
        for size in range(1, LONGEST_COUNTED + 1)
    ]
