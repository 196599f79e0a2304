"""Runs a function as an ordinary user, since root passes every permission check."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable

NOBODY = 65534


def as_ordinary_user(function: Callable[[], None]) -> None:
    """Calls `function` in a forked child that is not root; an exception there fails the test here.

    Everything the function needs must be imported before: the child may not be able to read the interpreter's files.
    """
    if os.getuid() != 0:
        function()
        return
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            function()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "the function failed as an ordinary user, see the captured output"
