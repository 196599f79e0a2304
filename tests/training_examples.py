"""The examples of docs/training.md: the first Python block under each heading."""

from __future__ import annotations

import re
from pathlib import Path

DOCUMENT = Path(__file__).parent.parent / "docs" / "training.md"


def example(heading: str) -> str:
    section = DOCUMENT.read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    block = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert block, f"{DOCUMENT}: no Python under {heading}"
    return block[1]
