"""All that is configured together, and what is configured once: schedules and the engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from zoneinfo import available_timezones

from pydantic import field_validator, model_validator

from tokpack_core.config.corpora import CorpusConfig
from tokpack_core.config.datasets import DatasetConfig
from tokpack_core.config.tokenizers import TokenizerConfig
from tokpack_core.config.values import Model, UnicodeForm

CRON_FIELDS = 5
"""Minute, hour, day, month, day of the week: a sixth, of seconds, is not for Dagster."""
AUTOMATION_SENSOR, SOURCE_SENSOR = "automation", "source_files"
"""The sensors in the UI, whose names no schedule can have."""


class ScheduleConfig(Model):
    """When everything that changed is built again."""

    cron: str
    """Five fields, like '0 3 * * *'."""
    timezone: str = "UTC"
    """A name of the IANA database, like Asia/Shanghai."""
    assets: tuple[str, ...] = ()
    """Keys of the assets that are built, with all they stand on; all when empty."""

    @field_validator("cron")
    @classmethod
    def cron_is_valid(cls, cron: str) -> str:
        # What only a project with schedules needs.
        from croniter import CroniterBadDateError, croniter

        if not croniter.is_valid(cron) or len(croniter.expand(cron)[0]) != CRON_FIELDS:
            raise ValueError(f"{cron!r} is no cron expression of five fields, like '0 3 * * *'")
        try:
            croniter(cron).get_next()
        except CroniterBadDateError as error:
            raise ValueError(f"{cron!r} names a date that never comes: correct day and month") from error
        return cron

    @field_validator("timezone")
    @classmethod
    def timezone_exists(cls, timezone: str) -> str:
        if timezone not in available_timezones():
            raise ValueError(f"{timezone!r} is no time zone of the IANA database, like Asia/Shanghai")
        return timezone


class EngineConfig(Model):
    """Where units of work run; shapes no bytes."""

    name: Literal["local", "ray"] = "local"
    """local: processes on this machine, or threads where text is normalized or encoded with 2 to 4 workers; ray: tasks
    on a Ray cluster."""
    address: str = "auto"
    """ray: the cluster, as `ray.init` takes it; `auto` is the one that runs on this machine."""

    @model_validator(mode="before")
    @classmethod
    def a_name_alone(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def the_address_is_of_a_cluster(self) -> EngineConfig:
        if self.name == "local" and "address" in self.model_fields_set:
            raise ValueError("`address` has no effect on the engine `local`: remove it, or name the engine `ray`")
        return self


@dataclass(frozen=True)
class Project:
    """All that is configured; relative corpus and tokenizer paths start at `base`."""

    base: Path
    corpora: dict[str, CorpusConfig]
    tokenizers: dict[str, TokenizerConfig]
    datasets: dict[str, DatasetConfig]
    schedules: dict[str, ScheduleConfig]
    engine: EngineConfig

    def encoded_pairs(self) -> list[tuple[str, str]]:
        """The (tokenizer, corpus) pairs that some dataset uses, sorted."""
        return sorted({(d.tokenizer, corpus) for d in self.datasets.values() for corpus in d.mixture})

    def training_corpora(self, tokenizer: str) -> dict[str, float]:
        """Shares of the training sample by corpus, summing to 1."""
        shares = self.tokenizers[tokenizer].train_on or {}
        total = sum(shares.values())
        return {corpus: share / total for corpus, share in sorted(shares.items())}

    def ancestors(self, tokenizer: str) -> list[str]:
        """The tokenizers that one is made from, nearest first; of a circle each once."""
        found: list[str] = []
        base = self.tokenizers[tokenizer].base
        while base in self.tokenizers and base not in found:
            found.append(base)
            base = self.tokenizers[base].base
        return found

    def by_descent(self) -> list[str]:
        """All tokenizers, each after those that it is made from."""
        return sorted(self.tokenizers, key=lambda name: len(self.ancestors(name)))

    def unicode_form(self, tokenizer: str) -> UnicodeForm:
        """The form that all corpora of a tokenizer's training sample share."""
        return self.corpora[next(iter(self.training_corpora(tokenizer)))].normalize.unicode
