"""One Postgres for a whole test run, and a fresh copy of the migrated database for each module that asks.

The server is started when the first test asks for it, once, by the process that pytest was called with; workers of
pytest-xdist ask that process over a local socket. `PREVAIL_TEST_DATABASE_URL` names a server to use instead (its role
must be allowed to create databases). A run that needs a database and cannot have one fails.
"""

import asyncio
import contextlib
import gc
import os
import secrets
import shutil
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from pydantic import SecretStr
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from app.cli import upgrade
from app.embedded import EmbeddedPostgres
from app.settings import normalize_database_url
from tests.api.generated.profile import LONG
from tests.folders import server_folder

# Settings of the developer's shell must not decide what the tests see.
EXTERNAL_URL = os.environ.pop("PREVAIL_TEST_DATABASE_URL", None)
for name in [name for name in os.environ if name.startswith("PREVAIL_")]:
    del os.environ[name]

# Nothing in a test speaks TLS, and reading the authorities of the world is 25 ms for each client of HTTP that is made.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("data") / "nobody.pem")

# Generated examples are the same in every run and may take as long as a busy machine makes them; the long run
# (`make fuzz`) looks for new ones.
settings.register_profile("usual", derandomize=True, deadline=None, database=None, max_examples=50)
settings.register_profile("long", deadline=None)
settings.load_profile("long" if LONG else "usual")


@dataclass(frozen=True, slots=True)
class Template:
    """A server, as the URL of a database on it to give orders from, and the name of the migrated database there."""

    admin_url: str
    name: str

    def url(self, database: str) -> str:
        """URL of another database of the same server."""
        base, _, rest = self.admin_url.rpartition("/")
        _, question, query = rest.partition("?")
        return f"{base}/{database}{question}{query}"

    def execute(self, statement: str) -> None:
        """Run one statement outside any transaction."""

        async def run() -> None:
            engine = create_async_engine(self.admin_url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
            async with engine.connect() as connection:
                await connection.exec_driver_sql(statement)

        run_coroutine(run())


def run_coroutine(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end, also when the caller stands inside an event loop."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, coroutine).result()


class Provider:
    """Starts the server at the first question for it and stops it at the end."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._template: Template | None = None
        self._listener: Listener | None = None
        self._key = secrets.token_bytes(32)

    def template(self) -> Template:
        """The migrated database, made at the first call."""
        with self._lock:
            if self._template is None:
                self._template = self._make()
            return self._template

    def _make(self) -> Template:
        if EXTERNAL_URL is not None:
            admin_url = normalize_database_url(EXTERNAL_URL)
        else:
            folder = server_folder("tests")
            self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
            server = self._stack.enter_context(EmbeddedPostgres.start(folder / "data", durable=False))
            admin_url = normalize_database_url(server.dsn("postgres"))
        template = Template(admin_url, f"prevail_template_{secrets.token_hex(6)}")
        template.execute(f'CREATE DATABASE "{template.name}"')
        self._stack.callback(template.execute, f'DROP DATABASE "{template.name}" WITH (FORCE)')
        upgrade(SecretStr(template.url(template.name)), "head")
        return template

    def serve(self) -> tuple[str, bytes]:
        """Answer workers from now on; returns the address and the key to ask with."""
        if self._listener is None:
            self._listener = Listener(family="AF_UNIX", authkey=self._key)
            threading.Thread(target=self._answer, args=(self._listener,), daemon=True).start()
        return str(self._listener.address), self._key

    def _answer(self, listener: Listener) -> None:
        while True:
            try:
                connection = listener.accept()
            except OSError:
                return
            with connection, ThreadPoolExecutor(1) as pool:
                question = pool.submit(self.template)
                error = question.exception()
                # Sent as text, since not every error survives the way; the worker fails with it.
                connection.send(astuple(question.result()) if error is None else f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """Stop what was started."""
        if self._listener is not None:
            self._listener.close()
        self._stack.close()


PROVIDER = pytest.StashKey[Provider]()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.stash[PROVIDER] = Provider()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file of slow tests only is not imported when these are left out: what it needs may not be installed.

    When they alone are asked for, files that have none are not imported.
    """
    if collection_path.suffix != ".py" or config.option.markexpr not in ("slow", "not slow"):
        return None
    text = collection_path.read_text()
    if config.option.markexpr == "slow":
        return None if "pytest.mark.slow" in text else True
    return True if "\npytestmark = pytest.mark.slow\n" in text else None


def pytest_collection() -> None:
    gc.disable()


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the garbage collector need not look at a million objects again and again,
    nor while they come.
    """
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist where to ask."""
    node.workerinput["database_provider"] = node.config.stash[PROVIDER].serve()


def pytest_unconfigure(config: pytest.Config) -> None:
    if PROVIDER in config.stash:
        config.stash[PROVIDER].close()


@pytest.fixture(scope="session")
def template_database(request: pytest.FixtureRequest) -> Template:
    """The migrated database that clones are made of; nobody may connect to it."""
    worker: dict[str, Any] | None = getattr(request.config, "workerinput", None)
    if worker is None:
        return request.config.stash[PROVIDER].template()
    address, key = worker["database_provider"]
    with Client(address, authkey=key) as connection:
        answer = connection.recv()
    if isinstance(answer, str):
        pytest.fail(f"no Postgres for the tests: {answer}", pytrace=False)
    return Template(*answer)


@contextlib.contextmanager
def empty_database(template: Template) -> Iterator[str]:
    """URL, in the form SQLAlchemy wants, of a migrated and empty database, which is there as long as the block."""
    name = f"test_{secrets.token_hex(8)}"
    template.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template.name}"')
    yield template.url(name)
    template.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(scope="module")
def database_url(template_database: Template) -> Iterator[str]:
    """URL of a database for this module alone."""
    with empty_database(template_database) as url:
        yield url
