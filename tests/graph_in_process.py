"""The real definitions on a Dagster instance of their own, in this process: what is built, what is stale and why."""

from __future__ import annotations

from dataclasses import dataclass, field

import dagster as dg
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest

from tests.small_project import SmallProject
from tokpack_assets.build_defs import build_defs
from tokpack_assets.sources import report_sources
from tokpack_core.engine import LocalEngine


@dataclass
class GraphInProcess:
    project: SmallProject
    instance: dg.DagsterInstance = field(default_factory=dg.DagsterInstance.ephemeral)

    def definitions(self, retrain: frozenset[str] = frozenset()) -> dg.Definitions:
        return build_defs(self.project.load(), self.project.store, LocalEngine(1), retrain=retrain)

    def materialize(self, *keys: str, retrain: frozenset[str] = frozenset()) -> dg.ExecuteInProcessResult:
        """Builds the named assets, or all, after telling Dagster of changed sources."""
        report_sources(self.project.load(), self.instance)
        assets = list(self.definitions(retrain).assets or [])
        chosen = dg.AssetSelection.assets(*(key.split("/") for key in keys)) if keys else None
        return dg.materialize(assets, instance=self.instance, selection=chosen, raise_on_error=False)  # type: ignore[arg-type]

    def stale(self) -> dict[str, list[str]]:
        """What Dagster's UI shows as unsynced, with its causes in words."""
        report_sources(self.project.load(), self.instance)
        graph = self.definitions().resolve_asset_graph()
        resolver = CachingStaleStatusResolver(self.instance, graph, LoadingContextForTest(self.instance))
        causes = {key: resolver.get_stale_root_causes(key) for key in graph.materializable_asset_keys}
        return {
            key.to_user_string(): [f"{cause.asset_key.to_user_string()} {cause.reason}" for cause in found]
            for key, found in causes.items()
            if found
        }

    def newest(self, key: str) -> dg.AssetMaterialization:
        event = self.instance.get_latest_materialization_event(dg.AssetKey(key.split("/")))
        assert event
        assert event.asset_materialization
        return event.asset_materialization

    def versions(self) -> dict[str, str]:
        keys = [key.to_user_string() for key in self.definitions().resolve_asset_graph().materializable_asset_keys]
        return {key: self.newest(key).tags["dagster/data_version"] for key in keys}
