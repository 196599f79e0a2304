"""The memory that is left is the least that the system or a control group leaves."""

from pathlib import Path

import pytest

from tokpack_core import available_memory
from tokpack_core.available_memory import available_bytes


def test_the_least_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo, own, groups = tmp_path / "meminfo", tmp_path / "cgroup", tmp_path / "groups"
    meminfo.write_text("MemTotal: 9000 kB\nMemAvailable: 5000 kB\n")
    own.write_text("0::/jobs/one\n")
    for name, path in (("MEMINFO", meminfo), ("OWN_GROUP", own), ("GROUPS", groups)):
        monkeypatch.setattr(available_memory, name, path)
    assert available_bytes() == 5000 * 1024
    inner = groups / "jobs" / "one"
    inner.mkdir(parents=True)

    def group(folder: Path, limit: str, used: int, inactive: int) -> None:
        (folder / "memory.max").write_text(f"{limit}\n")
        (folder / "memory.current").write_text(f"{used}\n")
        (folder / "memory.stat").write_text(f"anon 5\ninactive_file {inactive}\n")

    group(inner, "max", 10, 0)
    assert available_bytes() == 5000 * 1024
    group(groups / "jobs", "4000000", 1000000, 300000)
    assert available_bytes() == 3300000
    group(inner, "900", 1000, 0)
    assert available_bytes() == 0
    own.unlink()
    meminfo.unlink()
    assert available_bytes() is None
