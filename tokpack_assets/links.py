"""Links within Dagster's UI."""

from __future__ import annotations

import dagster as dg
from dagster import AssetRecordsFilter

DATA_VERSION_TAG = "dagster/data_version"
CODE_VERSION_TAG = "dagster/code_version"
INPUT_DATA_VERSION_TAG_PREFIX = "dagster/input_data_version"
LOOKED_THROUGH = 100
"""Newest materializations among which a version is looked for."""


def version_link(instance: dg.DagsterInstance, key: dg.AssetKey, version: str) -> str:
    """Address, within the UI, of an asset's page as of the materialization that gave a data version.

    A version that was built under another Dagster instance gives the asset's page.
    """
    page = f"/assets/{'/'.join(key.path)}?view=events"
    for record in instance.fetch_materializations(AssetRecordsFilter(key), limit=LOOKED_THROUGH).records:
        materialization = record.asset_materialization
        if materialization and (materialization.tags or {}).get(DATA_VERSION_TAG) == version:
            return f"{page}&asOf={int(record.timestamp * 1000)}"
    return page
