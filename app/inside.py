"""The service inside another program: its application on a Postgres of its own, for notebooks and tests of users."""

import contextlib
import logging
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from app.embedded import start_embedded
from app.services.processes.worker import begin_forking, no_collection

if TYPE_CHECKING:
    from fastapi import FastAPI


@contextlib.contextmanager
def started(folder: Path | None) -> "Iterator[FastAPI]":
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
        database = start_embedded(home / "data" if folder is None else home)
        with ThreadPoolExecutor(1) as beside:
            # A second interpreter imports the service too: the first long computation need not wait for it then.
            begin_forking()
            # The database starts meanwhile.
            starting = beside.submit(database.__enter__)
            try:
                with no_collection():
                    from pydantic import SecretStr

                    from app.cli import upgrade
                    from app.main import create_app
                    from app.settings import Authentication, Settings, normalize_database_url
            finally:
                server = starting.result()
                stack.push(database)
            url = SecretStr(normalize_database_url(server.dsn()))
            # A notebook's thread has an event loop already.
            beside.submit(upgrade, url, "head").result()
        # Who ends it at once interrupts connections of the queue that are being made, which is no fault to print.
        logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())
        yield create_app(Settings(database_url=url, authentication=Authentication.off))
