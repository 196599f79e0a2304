"""Where the words of SentencePiece end; see `sentencepiece_words`."""

from __future__ import annotations

from numba import njit

from tokpack_core.bpe.pretokenization_kernels import code_point

SPACE, ALONE, INHERITED, LEFT_OUT = 255, 254, 253, 252
"""Classes beside scripts: the space, what is a word by itself, what belongs to any script, what no piece may hold."""
ANY = -1


@njit(cache=True, nogil=True)
def word_ends(data, offsets, classes, longest, ends):  # type: ignore[no-untyped-def]
    """Ends of the words of all documents, which cover them; `ends` int64 has room for one a byte. Returns how many.

    A word is spaces and then characters of one script, or a character that stands alone; what is left out stands alone.
    """
    count = 0
    for document in range(offsets.size - 1):
        at = offsets[document]
        stop = offsets[document + 1]
        characters = 0
        script = ANY
        in_spaces = True
        alone = False
        while at < stop:
            code, length = code_point(data, at, stop)
            kind = classes[code]
            single = kind in (ALONE, LEFT_OUT)
            if kind == SPACE:
                ended = not in_spaces
            elif single or alone:
                ended = True
            else:
                ended = kind != INHERITED and script != ANY and kind != script
            if (ended or characters == longest) and characters > 0:
                ends[count] = at
                count += 1
                characters = 0
                script = ANY
                in_spaces = True
            if kind != SPACE:
                in_spaces = False
                if kind != INHERITED:
                    script = kind
            alone = single
            characters += 1
            at += length
        if characters > 0:
            ends[count] = stop
            count += 1
    return count
