"""Tokenizers by family and by file: the two doors through which the rest of tokpack gets one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from tokpack_core.config import MODULAR, SpecialTokens, TrainConfig, UnicodeForm
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.byte_bpe.training import train_byte_bpe
from tokpack_core.tokenizers.huggingface import gpt2_files
from tokpack_core.tokenizers.huggingface import model as huggingface
from tokpack_core.tokenizers.metadata import Metadata, config_files, published_roles, read_metadata
from tokpack_core.tokenizers.modular.language_texts import LabelledTexts
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.residues.residues import read_residues
from tokpack_core.tokenizers.sentencepiece import model as sentencepiece_model
from tokpack_core.tokenizers.tiktoken import export as tiktoken_export
from tokpack_core.tokenizers.tiktoken import ranks as tiktoken_ranks

SUFFIXES = (".json", ".model", ".tiktoken", ".tokpack")
NO_SPECIAL_TOKENS = SpecialTokens()


def train(config: TrainConfig, texts: Iterator[pa.Array], unicode: UnicodeForm) -> Tokenizer:
    """Train on string arrays, which are read once; `pretrained` reads its file and no text.

    Raises InputError when the text cannot give such a tokenizer, or the file cannot be read.
    """
    if config.allocation is not None:
        raise InputError("an `allocation` is trained on texts whose domain is named: give those to `train_allocated`")
    if config.family == "byte_bpe":
        return train_byte_bpe(config, texts, unicode)
    # All others load kernels, which small texts in a byte-level BPE have no use for.
    if config.family in ("sentencepiece_bpe", "sentencepiece_unigram"):
        from tokpack_core.tokenizers.sentencepiece.training import train_sentencepiece

        return train_sentencepiece(config, texts, unicode)
    if config.family == "wordpiece":
        from tokpack_core.tokenizers.wordpiece.training import train_wordpiece

        return train_wordpiece(config, texts, unicode)
    if config.family in ("character", "word"):
        from tokpack_core.tokenizers.word_level import train_word_level

        return train_word_level(config, texts, unicode)
    if config.family in ("superbpe", "boundless_bpe"):
        from tokpack_core.tokenizers.superwords.training import train_superwords

        return train_superwords(config, texts, unicode)
    if config.family == "cnf_mce":
        from tokpack_core.tokenizers.minimum_cost.cnf_mce import train_cnf_mce

        return train_cnf_mce(config, texts, unicode)
    if config.family in MODULAR:
        raise InputError(f"a {config.family} tokenizer is trained on texts whose language is named: give it those")
    if config.path is None:
        raise InputError("a pretrained tokenizer needs `path`: a tokenizer.json, .model or .tiktoken")
    return load(Path(config.path), config.special_tokens, named_pretokenizer(config))


def train_modular(
    config: TrainConfig,
    texts: Iterator[LabelledTexts],
    unicode: UnicodeForm,
    on_texts: Callable[[pa.Array], None] = lambda _: None,
) -> Tokenizer:
    """Train a family of MODULAR on texts and the language of each; read once. `on_texts` is shown all texts.

    Raises InputError as `train` does.
    """

    def shown() -> Iterator[LabelledTexts]:
        for batch, languages in texts:
            on_texts(batch)
            yield batch, languages

    # These load kernels, which other families have no use for.
    if config.family == "modular_bpe":
        from tokpack_core.tokenizers.modular.sequential_bpe import train_modular_bpe

        return train_modular_bpe(config, shown(), unicode)
    from tokpack_core.tokenizers.modular.merged_unigram import train_modular_unigram

    return train_modular_unigram(config, shown(), unicode)


def train_allocated(config: TrainConfig, texts: Iterator[tuple[str, pa.Array]], unicode: UnicodeForm) -> Tokenizer:
    """Train on string arrays with the domain of each, by `allocation`; read once. Raises InputError as `train` does."""
    if config.family == "byte_bpe":
        from tokpack_core.tokenizers.byte_bpe import allocation

        return allocation.train_allocated(config, texts, unicode)
    from tokpack_core.tokenizers.sentencepiece import allocation as of_pieces

    return of_pieces.train_allocated(config, texts, unicode)


def named_pretokenizer(config: TrainConfig) -> str | None:
    """What a configuration says of a rank file's regex; None if it leaves that to the file."""
    return config.pretokenizer if "pretokenizer" in config.model_fields_set else None


def load(path: Path, special_tokens: SpecialTokens = NO_SPECIAL_TOKENS, pretokenizer: str | None = None) -> Tokenizer:
    """Open a folder saved by us, a tokenizer.json, x.model, x.tiktoken, GPT-2's vocab.json beside merges.txt, or a
    folder that holds one of them.

    Special tokens of a published tokenizer are those given, then those of a `tokenizer_config.json` beside it. What it
    lists and the file lacks is added to a tokenizer.json (see `listed_tokens`), and left out of others. One that is
    given and not in the vocabulary is appended with a new id (tokenizer.json, .tiktoken) or refused (.model).
    `pretokenizer` is the regex of a bare rank file; by default that of the published file with the same ranks.
    Raises InputError if nothing can be opened, or a `pretokenizer` is given for a file that has its own.
    """
    file = tokenizer_file(path)
    if file.suffix == ".tiktoken" and file.with_name(tiktoken_export.ENCODING).is_file():
        raise InputError(f"{file} is what a tokenizer.json was exported to for tiktoken: give the folder of that")
    requested = special_tokens.by_role()
    saved = read_metadata(file.parent)
    if pretokenizer is not None and not is_bare_rank_file(file):
        raise InputError(f"{file} says itself how text is split: leave out the pretokenizer {pretokenizer}")
    if saved is None and file.suffix == ".tokpack":
        raise InputError(f"{file} needs the tokenizer_config.json that was saved beside it: restore the folder")
    if saved is not None:
        refuse_changes(file, saved, requested)
        tokenizer = open_file(file, saved, None)
        if tokenizer.special_tokens != saved.ids:
            raise InputError(
                f"{file} does not belong to the tokenizer_config.json beside it: its special tokens have the ids "
                f"{tokenizer.special_tokens}, not {dict(saved.ids)}; restore the folder"
            )
        return tokenizer
    settings = {} if pretokenizer is None else {"pretokenizer": pretokenizer}
    published = {role: text for role, text in published_roles(file.parent).items() if role not in requested}
    return open_file(file, Metadata("pretrained", "none", requested, settings), published)


def is_bare_rank_file(path: Path) -> bool:
    """Whether nothing beside the ranks says how text is split. Raises InputError if `path` leads to no tokenizer."""
    file = tokenizer_file(path)
    return read_metadata(file.parent) is None and tiktoken_ranks.holds_ranks(file)


def open_file(file: Path, metadata: Metadata, published: dict[str, str] | None) -> Tokenizer:
    """The tokenizer of a file; without its residues if the folder names some."""
    tokenizer = open_plain(file, metadata, published)
    residues = read_residues(file.parent)
    if residues is None:
        return tokenizer
    # Loads kernels, which other tokenizers have no use for.
    from tokpack_core.tokenizers.residues.litetoken import LiteTokenTokenizer

    return LiteTokenTokenizer(tokenizer, residues)


def open_plain(file: Path, metadata: Metadata, published: dict[str, str] | None) -> Tokenizer:
    if file.suffix == ".json":
        return huggingface.load_huggingface(file, metadata, published)
    if file.suffix == ".tokpack":
        # Loads kernels, which other families have no use for.
        from tokpack_core.tokenizers.superwords.model import load_superwords

        return load_superwords(file, metadata)
    if file.suffix == ".model" and not tiktoken_ranks.holds_ranks(file):
        return sentencepiece_model.load_sentencepiece(file, metadata, published or {})
    return tiktoken_ranks.load_tiktoken(file, metadata)


def tokenizer_file(path: Path) -> Path:
    """The one file that holds the tokenizer; in a folder tokenizer.json goes before .model before .tiktoken.

    Of GPT-2's two files it is the vocabulary.
    """
    if path.is_file():
        if path.suffix not in SUFFIXES:
            raise InputError(f"{path} is no tokenizer: give a tokenizer.json, .model, .tiktoken or a folder with one")
        return path
    if not path.is_dir():
        raise InputError(f"{path} does not exist: give a tokenizer.json, .model, .tiktoken or a folder with one")
    for pattern in (huggingface.FILE_NAME, "*.tokpack", "*.model", "*.tiktoken", f"*{gpt2_files.VOCABULARY}"):
        found = sorted(path.glob(pattern))
        if len(found) > 1:
            raise InputError(f"{path} holds {len(found)} {pattern} files: name one of them")
        if found:
            return found[0]
    raise InputError(f"{path} holds no tokenizer.json, .model or .tiktoken: give the folder of a tokenizer")


def files_of(file: Path) -> list[Path]:
    """All files that are read for the tokenizer of `tokenizer_file`, of a folder that we did not save."""
    merges = gpt2_files.merges_beside(file)
    of_gpt2 = gpt2_files.is_vocabulary(file) and merges.is_file()
    return [file, *([merges] if of_gpt2 else []), *config_files(file.parent)]


def refuse_changes(file: Path, saved: Metadata, requested: dict[str, str]) -> None:
    for role, text in requested.items():
        if saved.special_tokens.get(role) != text:
            raise InputError(
                f"{file} was made with {role} {saved.special_tokens.get(role)!r}, not {text!r}: "
                "its special tokens are fixed; leave them out or make the tokenizer anew"
            )
