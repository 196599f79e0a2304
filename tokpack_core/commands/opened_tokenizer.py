"""A tokenizer named on a command line, and what a manifest says of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokpack_core.config import SpecialTokens
from tokpack_core.config.pretokenizers import check_pretokenizer
from tokpack_core.errors import InputError
from tokpack_core.store.files import sha256_of
from tokpack_core.store.objects import MANIFEST, FileEntry, digest_of
from tokpack_core.tokenizers import metadata, registry
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.protocol import Tokenizer, describe
from tokpack_core.tokenizers.tiktoken.ranks import regex_of_ranks


@dataclass(frozen=True)
class OpenedTokenizer:
    """`digest` is the sha256 over the sha256 and names of its files, as of an object of a store.

    `eod` is the string that was named besides, if the files do not name it.
    """

    path: Path
    tokenizer: Tokenizer
    files: tuple[FileEntry, ...]
    eod: str | None = None
    image: str | None = None
    """The placeholder of images that was named besides, if the files do not name it."""
    pretokenizer: str | None = None
    """The regex that was named for bare ranks."""

    @property
    def digest(self) -> str:
        return digest_of(self.files)

    def as_json(self) -> dict[str, Any]:
        files = [{"path": file.path, "size": file.size, "sha256": file.sha256} for file in self.files]
        named = {"path": str(self.path.absolute()), "digest": self.digest, "files": files, "eod_string": self.eod}
        named |= {"image_string": self.image} if self.image else {}
        return named | describe(self.tokenizer) | regex_of_ranks(self.tokenizer)

    def require_eod(self, remedy: str) -> int:
        if "eod" not in self.tokenizer.special_tokens:
            raise InputError(f"{self.path} names no end-of-document token: {remedy}")
        return self.tokenizer.special_tokens["eod"]

    def require_image(self) -> int:
        if "image" not in self.tokenizer.special_tokens:
            raise InputError(f"{self.path} names no placeholder of images: say which token it is with --image-token")
        return self.tokenizer.special_tokens["image"]

    def added_around(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Ids that a tokenizer.json's own post-processor puts before and after each text.

        Raises:
            InputError: the tokenizer is of another kind, or does something else.
        """
        if not isinstance(self.tokenizer, HuggingFaceTokenizer):
            raise InputError(
                f"{self.path} is no tokenizer.json, which alone has a post-processor: leave out --add-special-tokens"
            )
        return self.tokenizer.added_around()


def open_tokenizer(
    path: Path, eod: str | None = None, image: str | None = None, pretokenizer: str | None = None
) -> OpenedTokenizer:
    """`pretokenizer`: the regex of a bare rank file, if it is not a published one.

    Raises InputError when the tokenizer cannot be opened or has not the `eod` or `image` that is asked for.
    """
    if pretokenizer is not None:
        try:
            check_pretokenizer(pretokenizer)
        except ValueError as error:
            raise InputError(f"--pretokenizer: {error}") from None
    tokenizer = registry.load(path, SpecialTokens(eod=eod, image=image), pretokenizer)
    return OpenedTokenizer(path, tokenizer, tokenizer_files(path), eod, image, pretokenizer)


def saved_tokenizer(folder: Path, tokenizer: Tokenizer) -> OpenedTokenizer:
    """What opening the folder gives that the tokenizer was just saved in, and compared with what libraries read."""
    return OpenedTokenizer(folder, tokenizer, tokenizer_files(folder))


def tokenizer_files(path: Path) -> tuple[FileEntry, ...]:
    """All files of a folder that we saved; else those that loading reads."""
    file = registry.tokenizer_file(path)
    read = registry.files_of(file)
    if metadata.read_metadata(file.parent) is not None:
        own = file.parent / MANIFEST
        read = sorted(found for found in file.parent.rglob("*") if found.is_file() and found != own)
    names = [found.relative_to(file.parent).as_posix() for found in read]
    return tuple(
        FileEntry(name, found.stat().st_size, sha256_of(found)) for name, found in zip(names, read, strict=True)
    )
