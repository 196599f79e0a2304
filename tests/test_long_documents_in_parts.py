"""A part holds a long document without taking many times its size while it is written."""

import subprocess
import sys
from pathlib import Path

WRITE = """
import sys
from pathlib import Path
import pyarrow as pa
import tokpack_core.stages.normalize as normalize
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
size = 60_000_000
columns = {"id": ["a"], "text": ["some text, " * (size // 11)], "row": [1], "split": ["train"]}
batch = pa.record_batch(
    [pa.array(columns.get(field.name, [None]), field.type) for field in normalize.PART_SCHEMA], normalize.PART_SCHEMA
)
del columns
before = peak()
writer = normalize.PartWriter(Path(sys.argv[1]), normalize.PART_SCHEMA)
writer.write(batch)
writer.close()
print((peak() - before) / size)
"""


def test_writing_takes_less_than_four_times_the_document(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", WRITE, str(tmp_path)], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 3.5
    assert (tmp_path / "part-00000.parquet").is_file()
