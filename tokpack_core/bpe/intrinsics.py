"""What numba has no function for: an unaligned load, the lowest bit, a prefetch, moving a range of memory."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, entrypoints
from numba.extending import intrinsic

# Before its first kernel numba imports every package that registers an extension (awkward: 0.3 s); our kernels take
# nothing but numbers and arrays of numpy.
entrypoints._already_initialized = True

BIT, BYTE, INT32, INT64 = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
FOR_READING, KEEP_IN_ALL_CACHES, DATA = 0, 3, 1


def address(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Where the element of a contiguous one-dimensional array lies."""
    array = cgutils.create_struct_proxy(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


@intrinsic
def load_uint64(typing_context: Any, array: Any, place: Any) -> Any:
    """array[place : place + 8] of a uint8 array as a little-endian number; the caller sees to it that they exist."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place_of_eight = builder.bitcast(address(context, builder, signature, arguments), INT64.as_pointer())
        return builder.load(place_of_eight, align=1)

    return types.uint64(array, types.int64), generate


@intrinsic
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """The number of the lowest bit that is set in a uint64; the word is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], BIT(1))

    return types.int64(types.uint64), generate


@intrinsic
def prefetch(typing_context: Any, array: Any, place: Any) -> Any:
    """Starts to bring array[place] into the caches; any place is allowed."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), INT32, INT32, INT32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        wanted = builder.bitcast(address(context, builder, signature, arguments), BYTE.as_pointer())
        hints = [INT32(hint) for hint in (FOR_READING, KEEP_IN_ALL_CACHES, DATA)]
        builder.call(function, [wanted, *hints])
        return context.get_dummy_value()

    return types.none(array, types.int64), generate


@intrinsic
def move(typing_context: Any, target: Any, target_place: Any, source: Any, place: Any, number: Any) -> Any:
    """target[target_place : target_place + number] = source[place : place + number] of int32 arrays, which may be one
    and overlap; the caller sees to it that both exist."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, of = signature.args[0], signature.args[2]
        target = builder.gep(cgutils.create_struct_proxy(to)(context, builder, arguments[0]).data, [arguments[1]])
        source = builder.gep(cgutils.create_struct_proxy(of)(context, builder, arguments[2]).data, [arguments[3]])
        cgutils.raw_memmove(builder, target, source, arguments[4], 4)
        return context.get_dummy_value()

    return types.none(target, types.int64, source, types.int64, types.int64), generate
