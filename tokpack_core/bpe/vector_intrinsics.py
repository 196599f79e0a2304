"""Vectors of 64 bytes, for which numba has no type: what is true of each byte of a stretch, as the bits of a word.

LLVM makes of them what the processor has: one instruction, or several on narrower vectors.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tokpack_core.bpe.intrinsics import BYTE, INT64, address

WIDTH = 64
BYTES = ir.VectorType(BYTE, WIDTH)
QUOTE, BACKSLASH, SPACE = 0x22, 0x5C, 0x20


def each(byte: int) -> Any:
    return ir.Constant(BYTES, [byte] * WIDTH)


def place_of(context: Any, builder: Any, array: tuple[Any, Any], place: Any) -> Any:
    """Pointer to 64 bytes of an array, which is given with its type."""
    kind, value = array
    start = address(context, builder, types.none(kind, types.int64), [value, place])
    return builder.bitcast(start, BYTES.as_pointer())


@intrinsic
def copy_and_find_special(typing_context: Any, source: Any, place: Any, target: Any, to: Any) -> Any:
    """Copies source[place : place + 64] to target[to : to + 64], both of uint8; the caller sees to the room.

    Gives a bit for each byte, the first in the lowest: it is a quote, a backslash or a control character of JSON.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        word = builder.load(place_of(context, builder, (kinds[0], arguments[0]), arguments[1]), align=1)
        builder.store(word, place_of(context, builder, (kinds[2], arguments[2]), arguments[3]), align=1)
        special = builder.or_(
            builder.or_(
                builder.icmp_unsigned("==", word, each(QUOTE)), builder.icmp_unsigned("==", word, each(BACKSLASH))
            ),
            builder.icmp_unsigned("<", word, each(SPACE)),
        )
        return builder.bitcast(special, INT64)

    return types.uint64(source, types.int64, target, types.int64), generate


@intrinsic
def utf8_faults(typing_context: Any, array: Any, place: Any) -> Any:
    """A bit for each byte of array[place : place + 64] (uint8) that cannot follow the three before it in UTF-8.

    They must exist: place >= 3. A byte is at fault if it is no continuation where one of the three asks for it, or is
    one unasked, if no character has it, or if it makes of the byte before an overlong form, a surrogate or more than
    U+10FFFF (Unicode Standard, table 3-7).
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def before(distance: int) -> Any:
            start = builder.sub(arguments[1], INT64(distance))
            return builder.load(place_of(context, builder, (signature.args[0], arguments[0]), start), align=1)

        def compared(how: str, word: Any, byte: int) -> Any:
            return builder.icmp_unsigned(how, word, each(byte))

        def both(one: Any, other: Any) -> Any:
            return builder.and_(one, other)

        byte, first, second, third = (before(distance) for distance in range(4))
        continues = both(compared(">=", byte, 0x80), compared("<", byte, 0xC0))
        awaited = [compared(">=", first, 0xC0), compared(">=", second, 0xE0), compared(">=", third, 0xF0)]
        faults = [
            builder.xor(continues, reduce(builder.or_, awaited)),
            both(compared(">=", byte, 0xC0), compared("<", byte, 0xC2)),
            compared(">=", byte, 0xF5),
            both(compared("==", first, 0xE0), compared("<", byte, 0xA0)),
            both(compared("==", first, 0xED), compared(">=", byte, 0xA0)),
            both(compared("==", first, 0xF0), compared("<", byte, 0x90)),
            both(compared("==", first, 0xF4), compared(">=", byte, 0x90)),
        ]
        return builder.bitcast(reduce(builder.or_, faults), INT64)

    return types.uint64(array, types.int64), generate
