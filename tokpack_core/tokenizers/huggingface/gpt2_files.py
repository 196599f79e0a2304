"""GPT-2's two files, as Megatron's GPT2BPETokenizer takes them: `vocab.json` and `merges.txt`, whatever stands before.

    vocab.json    object of token → id, in the byte-level alphabet
    merges.txt    a merge a line, two tokens with a space between them, in the order of the merges

They do not say how text is split, nor what is special: that is GPT-2's own, and `<|endoftext|>` is its EOD. Other
models were published as such files with another split, so a vocabulary without that token, or that has a tokenizer.json
beside it, is refused.
"""

from __future__ import annotations

from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from tokpack_core.errors import InputError

VOCABULARY = "vocab.json"
MERGES = "merges.txt"
EOD = "<|endoftext|>"


def is_vocabulary(file: Path) -> bool:
    return file.name.endswith(VOCABULARY)


def merges_beside(vocabulary: Path) -> Path:
    return vocabulary.with_name(vocabulary.name.removesuffix(VOCABULARY) + MERGES)


def read_gpt2_files(vocabulary: Path) -> Tokenizer:
    """The tokenizer of both files. Raises InputError when they are not GPT-2's kind of files."""
    merges = merges_beside(vocabulary)
    whole = vocabulary.with_name("tokenizer.json")
    if whole.is_file():
        raise InputError(f"{vocabulary} does not say how text is split, as {whole} beside it does: give that")
    if not merges.is_file():
        raise InputError(f"{vocabulary} needs {merges} beside it: put it there, or give a tokenizer.json")
    try:
        engine = Tokenizer(models.BPE.from_file(str(vocabulary), str(merges)))
    except Exception as error:  # the library raises plain Exception for a file that it cannot parse
        said = " ".join(str(error).split())
        raise InputError(f"{vocabulary} and {merges} are no vocabulary and merges of a BPE ({said})") from None
    if engine.token_to_id(EOD) is None:
        raise InputError(
            f"{vocabulary} is not of GPT-2's kind, for it has no {EOD}, and does not say how text is split: give the "
            "tokenizer.json of the same tokenizer"
        )
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    engine.add_special_tokens([AddedToken(EOD, special=True, normalized=False)])
    return engine
