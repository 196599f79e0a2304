"""Tokens as text that is safe and unambiguous to show.

A space shows as ␣, line feed ⏎, carriage return ␍, tab ⇥. Characters that are invisible, reorder text or are not
assigned (controls, format and bidi characters, other spaces, private use) show as ⟨U+202E⟩, bytes that are not UTF-8
as ⟨E4 B8⟩, and so do the marks themselves where a token contains them: no two tokens show alike.
"""

from __future__ import annotations

import re

MARKS = {" ": "␣", "\n": "⏎", "\r": "␍", "\t": "⇥"}
OWN_SIGNS = frozenset(MARKS.values()) | {"⟨", "⟩"}
INVALID_BYTES = re.compile("([\udc80-\udcff]+)")
"""Where Python's surrogateescape puts bytes that are not UTF-8; valid UTF-8 never decodes to these."""


def visible(token: str | bytes) -> str:
    """`token` (bytes: UTF-8, valid or not) with everything that would not show, or mislead, written out."""
    text = token.decode(errors="surrogateescape") if isinstance(token, bytes) else token
    if text.isprintable() and OWN_SIGNS.isdisjoint(text):
        return text.replace(" ", "␣")
    # The pattern's group makes every second run an invalid one.
    return "".join(
        written_bytes(run) if index % 2 else "".join(map(visible_character, run))
        for index, run in enumerate(INVALID_BYTES.split(text))
    )


def visible_character(character: str) -> str:
    if character in MARKS:
        return MARKS[character]
    if character.isprintable() and character not in OWN_SIGNS:
        return character
    return written_code(character)


def printable(text: str) -> str:
    """Text of any kind, marks of visible tokens included, with only what would not show written out."""
    return "".join(character if character.isprintable() else written_code(character) for character in text)


def written_code(character: str) -> str:
    return f"⟨U+{ord(character):04X}⟩"


def written_bytes(escaped: str) -> str:
    return f"⟨{escaped.encode(errors='surrogateescape').hex(' ').upper()}⟩"
