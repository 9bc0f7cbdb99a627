"""The service inside another program: its application on a Postgres of its own, for notebooks and tests of users."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fastapi import FastAPI
from pydantic import SecretStr

from app.cli import start_embedded, upgrade
from app.main import create_app
from app.settings import Authentication, Settings, normalize_database_url


@contextlib.contextmanager
def started(folder: Path | None) -> Iterator[FastAPI]:
    """The application, whose lifespan the caller has to run; its Postgres ends with the context.

    Args:
        folder: Where the data is kept; without one it goes with the context.

    Raises:
        EmbeddedPostgresError: the Postgres does not start, or another service has the folder.
        CommandError: its database cannot be brought to the schema of this release.
    """
    with contextlib.ExitStack() as stack:
        home = folder
        if home is None:
            home = Path(tempfile.mkdtemp(prefix="prevail-"))
            stack.callback(shutil.rmtree, home, ignore_errors=True)
            # The server runs as another user where this one is root.
            home.chmod(0o711)
        server = stack.enter_context(start_embedded(home / "data" if folder is None else home))
        url = SecretStr(normalize_database_url(server.dsn()))
        upgrade(url, "head")
        yield create_app(Settings(database_url=url, authentication=Authentication.off))
