"""Eight bytes at any place of an array as one little-endian number, which numba has no function for."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def load_uint64(typing_context: Any, array: Any, place: Any) -> Any:
    """data[place : place + 8] of a contiguous uint8 array; the caller sees to it that they exist."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(address, align=1)

    return types.uint64(array, types.int64), generate
