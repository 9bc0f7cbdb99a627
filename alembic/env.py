"""How Alembic reaches the database: over asyncpg, with the URL of the caller or of the settings."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from alembic import context
from alembic.util import CommandError
from sqlalchemy import Connection, pool
from sqlalchemy.ext.asyncio import create_async_engine

from app.settings import Settings
from app.store.tables import metadata

# Two replicas that start at once migrate one after the other. Any fixed number of our own will do.
MIGRATION_LOCK = 7_313_025_761


def find_url() -> str:
    """Return `config.attributes["url"]`, or else the setting PREVAIL_DATABASE_URL.

    Raises:
        CommandError: neither is there.
    """
    url = context.config.attributes.get("url")
    if url is not None:
        return str(url)
    setting = Settings().database_url
    if setting is None:
        raise CommandError("expected PREVAIL_DATABASE_URL: which database is to be migrated?")
    return setting.get_secret_value()


def configure_and_run(connection: Connection) -> None:
    """Run the migrations in one transaction: all of them or none."""
    context.configure(connection=connection, target_metadata=metadata, compare_server_default=True)
    with context.begin_transaction():
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
        # Waiting for a lock would make every later query of the running service wait behind us.
        connection.exec_driver_sql("SET LOCAL lock_timeout = '10s'")
        context.run_migrations()


async def migrate_online() -> None:
    """Connect and migrate."""
    engine = create_async_engine(find_url(), poolclass=pool.NullPool)
    try:
        async with engine.connect() as connection:
            await connection.run_sync(configure_and_run)
    finally:
        await engine.dispose()


def run_anywhere() -> None:
    """Run on a thread of our own, so that Alembic can also be called where a loop is running already."""
    with ThreadPoolExecutor(max_workers=1) as executor:
        executor.submit(asyncio.run, migrate_online()).result()


if context.is_offline_mode():
    raise CommandError("expected a database: migrations read what it holds, so they cannot be written down as SQL")
run_anywhere()
