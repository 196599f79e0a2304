"""What a user writes: corpora, tokenizers, datasets, schedules and the engine, as frozen models.

The models check types, values and the agreement of one entry's keys; `agreement` checks that of entries; `files` reads
the YAML and turns what they find into one sentence with file, line, key and the nearest right key.
"""

from tokpack_core.config.corpora import SPLITS, CorpusConfig, NormalizeConfig, ReadConfig, Split, SplitShares
from tokpack_core.config.datasets import DatasetConfig, PackingConfig, Strategy
from tokpack_core.config.families import DERIVED, MODULAR, Family
from tokpack_core.config.pretokenizers import REGEX
from tokpack_core.config.project import EngineConfig, Project, ScheduleConfig
from tokpack_core.config.special_tokens import SpecialTokens
from tokpack_core.config.tokenizer_checks import TokenizerChecks
from tokpack_core.config.tokenizers import ModelConfig, TokenizerConfig
from tokpack_core.config.train import Digits, TieBreak, TrainConfig
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
