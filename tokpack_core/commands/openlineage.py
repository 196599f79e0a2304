"""`tokpack lineage TARGET --openlineage`: OpenLineage run events, one JSON line each, upstream first.

Units are folded into their assets, as in the printed tree. OPENLINEAGE_NAMESPACE names the namespace, as it does for
other producers of such events.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import orjson

from tokpack_core.commands.lineage_steps import own_units, steps_up
from tokpack_core.commands.store_access import Known, known_lineage
from tokpack_core.errors import InputError
from tokpack_core.stages import export
from tokpack_core.store import actions, objects
from tokpack_core.store.actions import Action
from tokpack_core.store.lineage import LineageGraph
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.openlineage import Output, run_event
