"""A folder of hostile file names, links, loops and files that are none."""

from __future__ import annotations

import os
from pathlib import Path


def write_tree(folder: Path) -> list[str]:
    """Hostile file names, links and loops; returns the names that a walk of `folder` must give, by their bytes.

    `dangling.txt`, a link to nothing, is one more and an error: tests that walk the rest remove it.
    """
    long_name = "x" * 240 + ".txt"
    deep = "deep/" + "/".join(f"d{level:02d}" for level in range(40)) + "/leaf.txt"
    found = [
        "name with  spaces .txt",
        "ünïcødé-文件-😀.txt",
        "nfd-e\u0301.txt",
        "nfd-\u00e9.txt",
        "new\nline.txt",
        "-rf.txt",
    ]
    found += ["glob[1]*?.txt", "quote'\"$(x).txt", "UPPER.TXT", long_name, deep, "loop/a/in.txt", "link_to_file.txt"]
    passed_over = [".hidden.txt", "noext", ".hidden/in.txt", "target", "dir.jsonl/readme.md"]
    for name in [*found[:-1], *passed_over]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text\n")
    (folder / "back\\slash.txt").write_text("text\n")
    Path(os.fsdecode(os.fsencode(folder) + b"/bad-\xff-name.txt")).write_text("text\n")
    os.mkfifo(folder / "fifo.txt")
    links = {"loop/a/up": "..", "self": "self", "dangling.txt": "nowhere", "link_to_file.txt": "target"}
    links |= {"devnull.txt": "/dev/null", "link_to_in.txt": "loop/a/in.txt", "also_loop": "loop"}
    for name, target in links.items():
        (folder / name).symlink_to(target)
    return sorted([*found, "back\\\\slash.txt", "bad-\\xff-name.txt"], key=str.encode)
