"""A service that reads data by reference, and has little memory for it."""

from typing import Any

from pydantic import SecretStr

from app.settings import Authentication, Settings


def settings_for(database_url: str, *prefixes: str, **others: Any) -> Settings:
    """As little memory as can be: of columns with more than 43,690 rows."""
    return Settings(
        database_url=SecretStr(database_url),
        authentication=Authentication.off,
        data_prefixes=prefixes,
        data_memory_bytes=1 << 20,
        **others,
    )
