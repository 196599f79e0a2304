"""What can go wrong for a reason the user can mend: one sentence with the file, line or document and the remedy."""


class TokpackError(Exception):
    """Base of all errors shown to users as one sentence, without a traceback."""


class ConfigError(TokpackError):
    """The configuration is wrong: names file, line, key and the nearest right key."""


class InputError(TokpackError):
    """A source file, a document or a tokenizer file cannot be used: names it, where in it, and the remedy."""


class GateError(TokpackError):
    """An upstream artifact failed a blocking check: names the figure, the limit and the offenders."""


class LostUnitError(TokpackError):
    """A unit of work lost its worker, or the machine that it ran on, again and again."""


class StoreError(TokpackError):
    """An object of the store is missing, altered or cannot be written."""
