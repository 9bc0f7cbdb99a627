"""Lines of JSON about the database among those about requests: lost, and back."""

import logging
from datetime import UTC, datetime
from typing import Any

from app.api.answers import write_json
from app.api.wire.request_log import LOGGER
from app.domain.members import rfc3339
from app.services.observing import Observer

_log = logging.getLogger(LOGGER)


class DatabaseLog(Observer):
    """Tells of nothing else."""

    def database_lost(self, reason: str) -> None:
        """One line."""
        _write("database_lost", reason=reason)

    def database_back(self, seconds: float) -> None:
        """One line."""
        _write("database_back", seconds=round(seconds, 3))


def _write(event: str, **facts: Any) -> None:
    _log.info("%s", write_json({"at": rfc3339(datetime.now(UTC)), "event": event, **facts}).decode())
