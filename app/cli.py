"""The command line: `prevail serve`, `worker`, `migrate`, `keys`, `export`, `import`, `check`, `health`.

What a command needs is imported inside it: a health check every few seconds should not load the whole service.
"""

import argparse
import asyncio
import contextlib
import ipaddress
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from pydantic import SecretStr, ValidationError

import app
from app import serving
from app.domain.errors import DomainError, Faulty
from app.embedded import EmbeddedPostgresError, has_database, running_dsn, start_embedded
from app.services.processes.worker import BLAS_THREADS
from app.settings import Authentication, Settings, describe_unknown_variables, normalize_database_url

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy.ext.asyncio import AsyncEngine

HEALTH_SECONDS: Final = 3.0
# A server that is starting or stopping, or has no connection left: all of these pass.
PASSING_STATES: Final = frozenset({"57P01", "57P03", "53300"})
Result = TypeVar("Result")
# Commands on the database itself.
_ON_DATABASE: Final = {
    "keys": "make, list, rotate and revoke API keys",
    "export": "write all of a project into a folder, or go on with what was begun there",
    "import": "read an export into a project; what is there already stays as it is",
    "check": "does every stored value follow from what is stored? exit code 0 when it does",
}
ANY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - looked up, not bound


class CommandError(RuntimeError):
    """A command cannot do its work; the message says why and what to do. Whatever is done here may raise it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code of the process."""
    # Before numpy is imported, whose threads within an operation get in the way of processes and of each other.
    os.environ.setdefault(BLAS_THREADS, "1")
    parser = argparse.ArgumentParser(
        prog="prevail",
        description="Evaluation as a service. Settings come from the environment, see docs/reference/settings.md.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve", help="run the service; without PREVAIL_DATABASE_URL on an embedded Postgres")
    commands.add_parser("worker", help="work on jobs, beside the services on the same database")
    migrate = commands.add_parser("migrate", help="bring the database to the schema of this release")
    migrate.add_argument("revision", nargs="?", default="head", help="revision to go up to (default: the newest)")
    health = commands.add_parser("health", help="ask the running service how it is; exit code 0 when well")
    health.add_argument("--ready", action="store_true", help="ask whether it can serve, database included")
    given = sys.argv[1:] if arguments is None else arguments
    for name, text in _ON_DATABASE.items():
        on_database = commands.add_parser(name, help=text)
        if name in given:
            # Only here: it loads the store, which takes a while.
            from app.commands import add_arguments

            add_arguments(name, on_database)
    chosen = parser.parse_args(arguments)
    try:
        unknown = describe_unknown_variables(os.environ)
        if unknown:
            return _fail("\n".join(unknown))
        settings = Settings()
        match chosen.command:
            case "serve":
                serve(settings)
            case "worker":
                work(settings)
            case "migrate":
                migrate_database(settings, chosen.revision)
            case "keys":
                print(run_on_keys(settings, chosen), end="")
            case "health":
                print(ask_health(settings, "/readyz" if chosen.ready else "/healthz"))
            case _:
                text, code = run_on_project(settings, chosen)
                print(text, end="")
                return code
    except ValidationError as error:
        return _fail("\n".join(_describe(problem) for problem in error.errors(include_url=False, include_input=False)))
    except Faulty as error:
        return _fail("\n".join(f"{fault.pointer.removeprefix('/')}: {fault.detail}" for fault in error.faults))
    except (CommandError, DomainError, EmbeddedPostgresError, serving.CannotListen) as error:
        return _fail(str(error))
    return 0


def _fail(message: str) -> int:
    print(f"prevail: {message}", file=sys.stderr)
    return 1


def _describe(problem: Any) -> str:
    name = "".join(f"PREVAIL_{part}".upper() + ": " for part in problem["loc"][:1])
    return f"{name}{problem['msg'].removeprefix('Value error, ')}"


# --- serve -----------------------------------------------------------------------------------------------------------


def serve(settings: Settings) -> None:
    """Run the service until it is told to stop, on the configured database or an embedded one."""
    serving.configure_logging(settings)
    with _terminable(), contextlib.ExitStack() as stack:
        # Before the database: a port that is in use should not be found after a minute of work.
        sockets = serving.take_address(settings.host, settings.port)
        for each in sockets:
            stack.enter_context(each)
        data, stop_database = "the database of PREVAIL_DATABASE_URL", lambda: None
        if settings.database_url is None:
            server = stack.enter_context(start_embedded(settings.data_dir))
            upgrade(SecretStr(normalize_database_url(server.dsn())), "head")
            server.supervise()
            # The application reads its settings from the environment, in workers that are processes of their own too.
            os.environ["PREVAIL_DATABASE_URL"] = server.dsn()
            os.environ["PREVAIL_DATABASE_DIR"] = str(server.home)
            data = f"{server.home} (embedded Postgres {server.installation.major})"
            stop_database = server.stop
        else:
            refuse_outdated_schema(settings.database_url, settings.database_wait_seconds)
        serving.listen(sockets, settings.host, settings.port)
        url = f"http://{_bracketed(ANY_ADDRESS.get(settings.host, settings.host))}:{settings.port}"
        lines = (
            f"service  {url}",
            f"docs     {url}/docs",
            f"data     {data}",
            describe_access(settings),
            "stop     Ctrl-C",
        )
        print("\n  ".join(("Prevail", *lines)), flush=True)
        serving.run(settings, sockets, before_end=stop_database)


def work(settings: Settings) -> None:
    """Work on jobs until told to stop, on the configured database or the embedded one of the service that runs.

    Raises:
        CommandError: there is no database, or it has not the schema of this release.
    """
    serving.configure_logging(settings)
    url = settings.database_url
    if url is None:
        dsn = running_dsn(settings.data_dir)
        if dsn is None:
            raise CommandError(
                f"expected PREVAIL_DATABASE_URL, or a service that runs on the embedded Postgres in {settings.data_dir}"
            )
        url = SecretStr(normalize_database_url(dsn))
    refuse_outdated_schema(url, settings.database_wait_seconds)
    # At least one job at once: a service that does none leaves them to workers.
    chosen = {"database_url": url, "job_concurrency": settings.job_concurrency or 1}
    print(f"Prevail works on up to {chosen['job_concurrency']} jobs at once; Ctrl-C stops it.", flush=True)
    serving.run_worker(settings.model_copy(update=chosen))


def describe_access(settings: Settings) -> str:
    """Describe the rules of access for the log."""
    loopback = listens_on_loopback(settings.host)
    first = "make the first by `prevail keys create --scope admin`"
    match settings.authentication:
        case Authentication.keys:
            return f"access   with an API key only; {first}"
        case Authentication.auto if loopback:
            return (
                f"access   no key needed as long as there is none; listens on {settings.host}, which only this machine "
                f"reaches; {first}"
            )
        case Authentication.auto:
            return f"access   with an API key; as long as there is none, from this machine only; {first}"
    if loopback:
        return f"access   no authentication; listens on {settings.host}, which only this machine reaches"
    return (
        f"WARNING  no authentication, and it listens on {settings.host}: whoever reaches port {settings.port} "
        "can read, write and delete everything; keep it behind a proxy or network that checks who asks"
    )


def listens_on_loopback(host: str) -> bool:
    """Return True if other machines can reach no address of a host; False for a name without an address."""
    try:
        addresses = {entry[4][0] for entry in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return False
    return all(ipaddress.ip_address(address).is_loopback for address in addresses)


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM unwind the stack as Ctrl-C does, so that what was started is stopped."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


# --- the service in use ----------------------------------------------------------------------------------------------


def named_service() -> tuple[str, str | None] | None:
    """Address of the service that `PREVAIL_URL` or else `prevail login` names, and its key; None without either.

    Raises:
        CommandError: what `prevail login` wrote cannot be used.
    """
    # Whoever has not installed the client has never logged in.
    if find_spec("prevail") is None:
        url = os.environ.get("PREVAIL_URL")
        return (url.rstrip("/"), os.environ.get("PREVAIL_API_KEY")) if url else None
    from prevail import settings as kept
    from prevail.errors import PrevailError

    try:
        found = kept.found(None, None)
    except PrevailError as error:
        raise CommandError(str(error)) from error
    return None if found.url_from == kept.USUAL else (found.url, found.key)


def refuse_service_elsewhere(settings: Settings, command: str) -> None:
    """Go on with a command on a whole database only when that is the database of the service in use.

    Raises:
        CommandError: `PREVAIL_URL` or `prevail login` names a service whose database is not known here.
    """
    named = named_service()
    if named is None or settings.database_url is not None:
        return
    local = listens_on_loopback(urlsplit(named[0]).hostname or "")
    if not local or running_dsn(settings.data_dir) is None:
        raise CommandError(
            f"{command} works on the database itself, and that of the service at {named[0]} is not known here: set "
            "PREVAIL_DATABASE_URL, or PREVAIL_DATA_DIR where it runs on this machine"
        )


@contextlib.contextmanager
def database_in_use(settings: Settings) -> Iterator[SecretStr]:
    """URL of the configured database, or of the embedded one of a data folder that exists, started when nobody runs it.

    Raises:
        CommandError: there is none. Only `serve` makes one.
    """
    with _terminable(), contextlib.ExitStack() as stack:
        url = settings.database_url
        if url is None:
            dsn = running_dsn(settings.data_dir)
            if dsn is None:
                if not has_database(settings.data_dir):
                    raise CommandError(
                        f"there is no database in {settings.data_dir.absolute()}: set PREVAIL_DATABASE_URL, or "
                        "PREVAIL_DATA_DIR to the folder of the service; only `prevail serve` makes a database"
                    )
                dsn = stack.enter_context(start_embedded(settings.data_dir)).dsn()
                upgrade(SecretStr(normalize_database_url(dsn)), "head")
            url = SecretStr(normalize_database_url(dsn))
        yield url


# --- migrate ---------------------------------------------------------------------------------------------------------


def migrate_database(settings: Settings, revision: str) -> None:
    """Bring the configured database, or the embedded one, up to a revision."""
    with database_in_use(settings) as url:
        read_revision(url, settings.database_wait_seconds)
        upgrade(url, revision)
        print(f"The schema is at revision {read_revision(url, 0)}.")


def alembic_config(url: SecretStr | None = None) -> "Config":
    """Alembic's configuration, for the database at `url`."""
    from alembic.config import Config

    ini = app.MIGRATIONS.parent / "alembic.ini"
    if not ini.exists():
        raise CommandError(f"{ini} is missing: run from a clone, the image or a wheel, which hold the migrations")
    config = Config(ini)
    if url is not None:
        config.attributes["url"] = url.get_secret_value()
    return config


def upgrade(url: SecretStr, revision: str) -> None:
    """Run the migrations of the database at `url` up to a revision."""
    from app.store.engine import expected_revision

    # Importing alembic takes longer than to ask, and nearly always there is nothing to do.
    if revision == "head" and read_revision(url, 0) == expected_revision():
        return
    from alembic import command
    from alembic.util import CommandError as AlembicError
    from sqlalchemy.exc import DBAPIError

    try:
        command.upgrade(alembic_config(url), revision)
    except (AlembicError, DBAPIError) as error:
        reason = error.orig if isinstance(error, DBAPIError) else error
        raise CommandError(f"the migration to {revision!r} is not possible: {reason}") from error


def refuse_outdated_schema(url: SecretStr, wait_seconds: float) -> None:
    """Go on only when the database has the schema of this release."""
    from app.store.engine import expected_revision, known_revisions

    newest, present = expected_revision(), read_revision(url, wait_seconds)
    if present != newest:
        state = "has no schema yet" if present is None else f"is at revision {present}"
        # An unknown one comes from a newer release: this one's migrations cannot lead away from it.
        is_known = present is None or present in known_revisions()
        remedy = "run `prevail migrate` first" if is_known else "run the release that it was migrated for"
        raise CommandError(f"the database {state}, this release needs {newest}; {remedy}")


def read_revision(url: SecretStr, wait_seconds: float) -> str | None:
    """The schema revision of the database at `url`, if it has one; waits for it when it does not answer yet."""
    from sqlalchemy.exc import ArgumentError, DBAPIError
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    from app.store.engine import revision_at

    async def read() -> str | None:
        engine = create_async_engine(url.get_secret_value(), poolclass=NullPool)
        async with engine.connect() as connection:
            return await revision_at(connection)

    deadline, told = time.monotonic() + wait_seconds, False
    while True:
        try:
            return asyncio.run(read())
        except (ArgumentError, ValueError) as error:
            raise CommandError(f"PREVAIL_DATABASE_URL: {error}") from error
        except (OSError, DBAPIError) as error:
            reason: BaseException | None = error
            if isinstance(error, DBAPIError):
                reason = error.orig
                if getattr(reason, "sqlstate", None) not in PASSING_STATES:
                    raise CommandError(f"the database refuses: {reason}") from error
            if time.monotonic() > deadline:
                raise CommandError(f"the database did not answer for {wait_seconds:g} s: {reason}") from error
            if not told:
                print(f"prevail: waiting up to {wait_seconds:g} s for the database: {reason}", file=sys.stderr)
            told = True
            time.sleep(0.25)


# --- keys and projects ------------------------------------------------------------------------------------------------


def run_on_keys(settings: Settings, chosen: argparse.Namespace) -> str:
    """Carry out a command about keys, at the service that is named or in the database; returns what to print."""
    from app.commands import run_keys, run_keys_at

    named = named_service()
    return run_on_database(settings, partial(run_keys, chosen)) if named is None else run_keys_at(*named, chosen)


def run_on_database(settings: Settings, run: "Callable[[AsyncEngine], Coroutine[Any, Any, Result]]") -> Result:
    """Carry out a command on the database of the service; returns what it returns."""
    from app.domain.operations import Actor
    from app.services.present import act_as
    from app.store.engine import create_engine

    async def carry_out(url: SecretStr) -> Result:
        act_as(Actor("command line"))
        engine = create_engine(url.get_secret_value(), pool_size=2)
        try:
            return await run(engine)
        finally:
            await engine.dispose()

    with database_in_use(settings) as url:
        refuse_outdated_schema(url, settings.database_wait_seconds)
        return asyncio.run(carry_out(url))


def run_on_project(settings: Settings, chosen: argparse.Namespace) -> tuple[str, int]:
    """Carry out a command about a whole project; returns what to print, and the exit code."""
    from app.commands import run_on_whole

    refuse_service_elsewhere(settings, chosen.command)
    try:
        return run_on_database(settings, partial(run_on_whole, chosen))
    except OSError as error:
        raise CommandError(str(error)) from error


# --- health ----------------------------------------------------------------------------------------------------------


def ask_health(settings: Settings, path: str) -> str:
    """Ask the service that is named, or the one on this machine; returns its answer."""
    import http.client  # only here: a server has no use for it

    host = ANY_ADDRESS.get(settings.host, settings.host)
    named = named_service()
    asked = (named[0] if named else f"http://{_bracketed(host)}:{settings.port}") + path
    try:
        url = urlsplit(asked)
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        with contextlib.closing(kind(url.hostname or "", url.port, timeout=HEALTH_SECONDS)) as connection:
            connection.request("GET", url.path)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise CommandError(f"{asked} does not answer: {error}") from error
    if answer.status != http.HTTPStatus.OK:
        raise CommandError(f"{asked} answered {answer.status}: {text[:500]}")
    return text
