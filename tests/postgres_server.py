"""A real PostgreSQL server of its own on this machine, run by an ordinary user, since it refuses root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg2

from tests.dagster_server import free_port
from tests.ordinary_user import NOBODY


def programs() -> tuple[str, str] | None:
    """initdb and postgres, also where Debian hides them."""
    hidden = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    path = os.pathsep.join([os.environ.get("PATH", ""), *map(str, hidden)])
    initdb, postgres = shutil.which("initdb", path=path), shutil.which("postgres", path=path)
    return (initdb, postgres) if initdb and postgres else None


@contextmanager
def postgres_server(database: str) -> Iterator[str]:
    """URL of a new, empty database; the server ends with the block."""
    found = programs()
    assert found
    initdb, postgres = found
    port = free_port()
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="tokpack_postgres_"))
    if user:
        os.chown(folder, NOBODY, NOBODY)
    data = folder / "data"
    subprocess.run(
        [initdb, "-D", data, "-U", "tokpack", "-A", "trust", "--no-sync"],
        check=True,
        capture_output=True,
        cwd="/",
        **user,
    )
    settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    server = subprocess.Popen(
        [postgres, "-D", data, "-p", str(port), *options],
        cwd="/",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **user,
    )
    address = f"postgresql://tokpack@127.0.0.1:{port}"
    try:
        create_database(f"{address}/postgres", database)
        yield f"{address}/{database}"
    finally:
        server.terminate()
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def create_database(url: str, name: str) -> None:
    for _ in range(100):
        try:
            connection = psycopg2.connect(url)
            break
        except psycopg2.OperationalError:
            time.sleep(0.2)
    else:
        raise AssertionError("the PostgreSQL server did not start")
    connection.autocommit = True
    connection.cursor().execute(f"CREATE DATABASE {name}")
    connection.close()


def ask(url: str, query: str) -> list[tuple[object, ...]]:
    connection = psycopg2.connect(url)
    try:
        cursor = connection.cursor()
        cursor.execute(query)
        return list(cursor.fetchall())
    finally:
        connection.close()
