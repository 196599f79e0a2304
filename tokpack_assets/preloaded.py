"""What the processes of a run's steps are forked from: the definitions, as they are when the run's first step begins.

A step that read the configuration anew could find it changed or, while it is edited, wrong; and of a step whose
definitions do not load Dagster tells no failure, so that the run would wait for the slot of its pool for ever.

A fork server passes over a module that raises ImportError: the steps then say themselves what is wrong.
"""

import importlib

import dagster as dg

try:
    importlib.import_module("tokpack_assets.definitions")
except dg.DagsterInvalidDefinitionError as error:
    raise ImportError(str(error)) from error
