"""The lineage of a store with units of work folded into the assets that own them.

A unit (a normalized part, a packing block, …) is owned by the asset objects that list it. In the folded graph an
object stands on objects of assets only; a step says how many units of the other it uses.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tokpack_core.stages import export, normalize, pack, report, shards, tokenizer
from tokpack_core.store.lineage import LineageGraph
from tokpack_core.store.objects import ObjectRef

OWNERS = {
    normalize.UNIT_STAGE: normalize.STAGE,
    report.UNIT_STAGE: report.STAGE,
    shards.UNIT_STAGE: shards.STAGE,
    pack.UNIT_STAGE: pack.STAGE,
}
"""Stage of a kind of unit to the stage that lists it."""
ORDER = {stage: n for n, stage in enumerate(s.STAGE for s in (normalize, tokenizer, report, shards, pack, export))}
"""What stands on what: the longest way down is shown first, and what it met is not opened again."""


@dataclass(frozen=True)
class Step:
    """To an object, of which `units` units are used; 0 when it is used as a whole."""

    ref: ObjectRef
    units: int


def steps_up(graph: LineageGraph, ref: ObjectRef) -> list[Step]:
    """What an object was made from."""
    direct = graph.upstream.get(ref, [])
    named = {source.stage for source in direct}
    found = list(direct)
    for unit in own_units(graph, ref):
        # A unit names what it reads by content, which several objects may share; what `ref` names itself is exact.
        found += [source for source in graph.upstream.get(unit, []) if source.stage not in named]
    used = list(dict.fromkeys(source for source in found if OWNERS.get(source.stage) != ref.stage))
    whole = [Step(source, 0) for source in used if source.stage not in OWNERS]
    return whole + owner_steps(graph, ref, [source for source in used if source.stage in OWNERS])


def own_units(graph: LineageGraph, ref: ObjectRef) -> list[ObjectRef]:
    return [source for source in graph.upstream.get(ref, []) if OWNERS.get(source.stage) == ref.stage]


def owners(graph: LineageGraph, unit: ObjectRef) -> list[ObjectRef]:
    return [ref for ref in graph.downstream.get(unit, []) if ref.stage == OWNERS.get(unit.stage)]


def owner_steps(graph: LineageGraph, ref: ObjectRef, units: list[ObjectRef]) -> list[Step]:
    """The fewest, and of these the smallest, asset objects that list the units; a unit without owner stands alone.

    One that lists other units besides and was recorded after `ref` is not what `ref` was made from, though they share
    units; it is all that is left where garbage collection removed the version that was read.
    """
    made, used = first_recorded(graph, ref), set(units)

    def was_read(owner: ObjectRef) -> bool:
        recorded = first_recorded(graph, owner)
        earlier = made is None or (recorded is not None and recorded <= made)
        return earlier or used.issuperset(own_units(graph, owner))

    left = set(units)
    steps: list[Step] = []
    while left:
        covered = Counter(owner for unit in left for owner in owners(graph, unit) if was_read(owner))
        if not covered:
            return steps + [Step(unit, 1) for unit in units if unit in left]
        best = min(covered, key=lambda owner: (-covered[owner], len(own_units(graph, owner)), str(owner)))
        listed = left & set(own_units(graph, best))
        steps.append(Step(best, len(listed)))
        left -= listed
    return steps


def first_recorded(graph: LineageGraph, ref: ObjectRef) -> str | None:
    """UTC time, ISO 8601, at which a history first named an object."""
    return min((entry.when for entry in graph.versions.get(ref, [])), default=None)


def steps_down(graph: LineageGraph) -> dict[ObjectRef, list[Step]]:
    """What was made from each object, by object; from a unit, the assets that list it."""
    down: dict[ObjectRef, list[Step]] = defaultdict(list)
    for ref in graph.upstream:
        if ref.stage in OWNERS:
            down[ref] = [Step(owner, 0) for owner in owners(graph, ref)]
        else:
            for step in steps_up(graph, ref):
                if step.ref.stage not in OWNERS:
                    down[step.ref].append(Step(ref, step.units))
    for steps in down.values():
        steps.sort(key=lambda step: ORDER.get(step.ref.stage, 0))
    return down


def all_upstream(graph: LineageGraph, ref: ObjectRef) -> list[ObjectRef]:
    """An object and all that it was made from: units, and the assets that they are shown as in a lineage."""
    return list(reached(ref, lambda other: [*graph.upstream.get(other, ()), *(s.ref for s in steps_up(graph, other))]))


def all_downstream(graph: LineageGraph, ref: ObjectRef) -> list[ObjectRef]:
    """An object and all that was made from it."""
    return list(reached(ref, lambda other: graph.downstream.get(other, [])))


def reached(ref: ObjectRef, further: Callable[[ObjectRef], list[ObjectRef]]) -> Iterator[ObjectRef]:
    """An object and all that `further` leads to from it, each once."""
    waiting, seen = [ref], {ref}
    while waiting:
        ref = waiting.pop()
        yield ref
        new = [other for other in dict.fromkeys(further(ref)) if other not in seen]
        waiting += new
        seen.update(new)
