"""What a set of root objects reaches through the inputs of the actions that made them.

Equal content made by several actions is one object: an empty packing plan comes out of every tokenizer. To keep it
means to keep how one of them came to it and not the inputs of all, or every tokenizer ever tried would stay. A version
says which action is meant; elsewhere it is one whose inputs are kept anyway, else the one that needs the fewest more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tokpack_core.store.lineage import LineageGraph, named_objects
from tokpack_core.store.objects import ObjectRef


@dataclass(frozen=True)
class Root:
    """An object kept for its own sake.

    Attributes:
        reason: why, in words.
        action: key of the action that made it, where that is known.
    """

    ref: ObjectRef
    reason: str
    action: str | None = None


@dataclass
class Reachability:
    """Marks what is reached, with the reason that came first."""

    graph: LineageGraph
    reasons: dict[ObjectRef, str] = field(default_factory=dict)
    _open: dict[ObjectRef, tuple[str, list[set[ObjectRef]]]] = field(default_factory=dict)

    def mark(self, roots: Iterable[Root]) -> dict[ObjectRef, str]:
        for root in roots:
            self._reach(root.ref, root.reason, root.reason)
            known = self.graph.made_by.get(root.ref, {}).get(root.action or "")
            if known is not None:
                self._open.pop(root.ref, None)
                self._reach_all(set(named_objects(known.inputs, self.graph)), root.reason)
        while self._open:
            self._close_some()
        return self.reasons

    def _reach_all(self, refs: Iterable[ObjectRef], root: str) -> None:
        for ref in refs:
            self._reach(ref, f"made into: {root}", root)

    def _reach(self, ref: ObjectRef, reason: str, root: str) -> None:
        waiting = [(ref, reason)]
        while waiting:
            ref, reason = waiting.pop()
            if ref in self.reasons:
                continue
            self.reasons[ref] = reason
            ways = self._ways(ref)
            # What no action names is linked otherwise: an inventory to what was read from its files.
            certain = set(self.graph.upstream.get(ref, [])).difference(*ways) | (ways[0] if len(ways) == 1 else set())
            if len(ways) > 1:
                self._open[ref] = (root, ways)
            waiting += [(source, f"made into: {root}") for source in certain]

    def _ways(self, ref: ObjectRef) -> list[set[ObjectRef]]:
        """The inputs of each action that made an object."""
        made_by = self.graph.made_by.get(ref, {}).values()
        return [set(named_objects(action.inputs, self.graph)) - {ref} for action in made_by]

    def _close_some(self) -> None:
        """Decides for the undecided objects that need nothing more, or for the one that needs the fewest."""
        needed = {
            ref: min((way.difference(self.reasons) for way in ways), key=len) for ref, (_, ways) in self._open.items()
        }
        satisfied = [ref for ref, more in needed.items() if not more]
        for ref in satisfied or [min(needed, key=lambda one: len(needed[one]))]:
            root, _ = self._open.pop(ref)
            self._reach_all(needed[ref], root)
