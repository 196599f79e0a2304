"""Which published tokenizer a tiktoken rank file is, and so which regex it was made with.

A rank file does not name its regex, and with another one some of its tokens come out of no text. The published files
are known by the sha256 of their ranks, written one line a token in rank order: for the first four, the digests that
tiktoken itself checks (tiktoken_ext/openai_public.py); the others are of the files in openai-whisper, in dashscope
and beside Meta's checkpoints.
"""

from __future__ import annotations

import hashlib
from binascii import b2a_base64
from collections.abc import Mapping
from pathlib import Path

from tokpack_core.errors import InputError
from tokpack_core.tokenizers.pretokenizers import PRETOKENIZERS

PUBLISHED: dict[str, tuple[str, str]] = {
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": ("gpt2", "gpt2"),
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": ("p50k_base", "gpt2"),
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": ("cl100k_base", "cl100k"),
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": ("o200k_base", "o200k"),
    "b34b360dbb493e781e479794586d661700670d65564001f23024971d1f2fa126": ("whisper multilingual", "gpt2"),
    "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186": ("qwen", "qwen2"),
    "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55": ("llama3", "llama3"),
}
"""sha256 of the ranks: name, and `pretokenizer`"""


def published_pretokenizer(path: Path, ranks: Mapping[bytes, int]) -> str:
    """The pretokenizer of the ranks read from `path`. Raises InputError if they are none of PUBLISHED."""
    known = PUBLISHED.get(hashlib.sha256(rank_lines(ranks)).hexdigest())
    if known is None:
        names = ", ".join(name for name, _ in PUBLISHED.values())
        raise InputError(
            f"{path} does not say which regex splits text before its merges, and is no rank file that is known "
            f"({names}): name the regex as --pretokenizer, in a configuration as `pretokenizer` "
            f"({', '.join(PRETOKENIZERS)} or regex:PATTERN)"
        )
    return known[1]


def rank_lines(ranks: Mapping[bytes, int]) -> bytes:
    """A rank file: one line a token in rank order, its bytes in base64 and its rank."""
    ordered = sorted(ranks, key=ranks.__getitem__)
    return b"".join([b"%s %d\n" % (b2a_base64(token, newline=False), ranks[token]) for token in ordered])
