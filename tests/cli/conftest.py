"""The service as processes of its own: the real doors before a small application and two migrations."""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from app import cli
from app.embedded import EmbeddedPostgres
from app.embedded.cluster import free_port, processes_of, wait_until
from tests.folders import server_folder

APP = Path(cli.__file__).parent
APPLICATION = """
    import asyncio, json, os, time
    from concurrent.futures import ThreadPoolExecutor

    def create():
        return application

    async def application(scope, receive, send):
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": message["type"] + ".complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        while (await receive()).get("more_body"):
            pass
        if scope["path"] == "/busy":
            # Work that nothing ends: a thread that Python waits for, and one that the loop waits for.
            ThreadPoolExecutor(1).submit(time.sleep, 600)
            asyncio.get_running_loop().run_in_executor(None, time.sleep, 600)
        if scope["path"] == "/stuck":
            time.sleep(600)
        facts = {
            "pid": os.getpid(),
            "loop": type(asyncio.get_running_loop()).__module__,
            "database": "PREVAIL_DATABASE_URL" in os.environ,
            "folder": os.environ.get("PREVAIL_DATABASE_DIR"),
            "filling": "x" * 2000,
        }
        status = 200 if scope["path"] == "/healthz" else 503
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(facts).encode()})
"""
ENVIRONMENT = """
    import asyncio
    from alembic import context
    from sqlalchemy.ext.asyncio import create_async_engine

    def migrate(connection):
        context.configure(connection=connection)
        with context.begin_transaction():
            context.run_migrations()

    async def run():
        async with create_async_engine(context.config.attributes["url"]).connect() as connection:
            await connection.run_sync(migrate)
            await connection.commit()

    asyncio.run(run())
"""
MIGRATION = """
    from alembic import op
    revision = {revision!r}
    down_revision = {before!r}

    def upgrade():
        op.execute("CREATE TABLE table_{revision} (id int)")
"""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))


@pytest.fixture(scope="module")
def house() -> Iterator[Path]:
    """A folder with the doors of the service, from which `python -m app` runs."""
    house = server_folder("house")
    shutil.copytree(APP, house / "app", ignore=shutil.ignore_patterns("__pycache__", "wiring.py"))
    write(house / "app" / "main.py", APPLICATION)
    write(house / "alembic.ini", "[alembic]\nscript_location = %(here)s/alembic\n")
    write(house / "alembic" / "env.py", ENVIRONMENT)
    for revision, before in (("first", None), ("second", "first")):
        write(house / "alembic" / "versions" / f"{revision}.py", MIGRATION.format(revision=revision, before=before))
    yield house
    shutil.rmtree(house, ignore_errors=True)


@dataclass
class Service:
    """A service of the house, as its operator sees it."""

    house: Path
    data_dir: Path
    settings: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[str] | None" = None

    @property
    def environment(self) -> dict[str, str]:
        own = {"PREVAIL_PORT": str(self.port), "PREVAIL_DATA_DIR": str(self.data_dir), "PYTHONDONTWRITEBYTECODE": "1"}
        return dict(os.environ) | own | self.settings

    def command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run another command with the same settings to its end; its two outputs as one."""
        return subprocess.run(
            [sys.executable, "-m", "app", *arguments],
            cwd=self.house,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=60,
        )

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "app", "serve"],
            cwd=self.house,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert wait_until(lambda: self.answers() or self.ended(), 60)
        assert self.answers(), self.stop(signal.SIGKILL)

    def ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def answers(self) -> bool:
        with contextlib.suppress(OSError):
            self.ask()
            return True
        return False

    def ask(self, path: str = "/healthz") -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        connection.request("GET", path)
        facts: dict[str, Any] = json.loads(connection.getresponse().read())
        connection.close()
        return facts

    def send(self, path: str) -> None:
        """A request whose answer nobody waits for."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            time.sleep(0.5)

    def stop(self, number: signal.Signals) -> str:
        """Send a signal and wait; returns what the service said."""
        assert self.process is not None
        self.process.send_signal(number)
        said, _ = self.process.communicate(timeout=60)
        return str(said)

    def leftovers(self) -> list[int]:
        return processes_of(self.data_dir / "cluster")


@pytest.fixture
def service(house: Path) -> Iterator[Service]:
    folder = server_folder("data")
    service = Service(house, folder / "data")
    yield service
    if service.process is not None and service.process.poll() is None:
        service.stop(signal.SIGTERM)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def made_data(house: Path) -> Iterator[Path]:
    """A data folder with a migrated database, to be copied: making one takes seconds."""
    folder = server_folder("made")
    made = Service(house, folder / "data")
    made.start()
    made.stop(signal.SIGTERM)
    yield folder / "data"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def made_service(service: Service, made_data: Path) -> Service:
    """A service whose database is there already."""
    subprocess.run(["/bin/cp", "-a", made_data, service.data_dir], check=True)
    return service


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    """A Postgres that a service is told of by its URL."""
    folder = server_folder("external")
    with EmbeddedPostgres.start(folder / "data", durable=False) as server:
        yield server
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def external(service: Service, server: EmbeddedPostgres, request: pytest.FixtureRequest) -> Service:
    """A service on a database of its own, without a schema yet."""
    name = re.sub(r"\W", "_", request.node.name.lower())[:60]
    server.create_database(name)
    service.settings["PREVAIL_DATABASE_URL"] = server.dsn(name)
    return service


def password_of(service: Service) -> str:
    return service.settings["PREVAIL_DATABASE_URL"].split(":")[2].split("@")[0]
