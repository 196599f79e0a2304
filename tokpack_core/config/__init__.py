"""What a user writes: corpora, tokenizers, datasets, schedules and the engine, as frozen models.

The models check types, values and the agreement of one entry's keys; `agreement` checks that of entries; `files` reads
the YAML and turns what they find into one sentence with file, line, key and the nearest right key.
"""

from tokpack_core.config.corpora import SPLITS, CorpusConfig, NormalizeConfig, ReadConfig, Split, SplitShares
from tokpack_core.config.datasets import DatasetConfig, PackingConfig, Strategy
from tokpack_core.config.project import EngineConfig, Project, ScheduleConfig
from tokpack_core.config.tokenizers import (
    DERIVED,
    MODULAR,
    REGEX,
    Digits,
    Family,
    ModelConfig,
    SpecialTokens,
    TieBreak,
    TokenizerChecks,
    TokenizerConfig,
    TrainConfig,
)
from tokpack_core.config.values import OnError, UnicodeForm, parse_bytes

__all__ = [
    "DERIVED",
    "MODULAR",
    "REGEX",
    "SPLITS",
    "CorpusConfig",
    "DatasetConfig",
    "Digits",
    "EngineConfig",
    "Family",
    "ModelConfig",
    "NormalizeConfig",
    "OnError",
    "PackingConfig",
    "Project",
    "ReadConfig",
    "ScheduleConfig",
    "SpecialTokens",
    "Split",
    "SplitShares",
    "Strategy",
    "TieBreak",
    "TokenizerChecks",
    "TokenizerConfig",
    "TrainConfig",
    "UnicodeForm",
    "parse_bytes",
]
