"""One line of JSON per request, when the operator asks for it: who, what, how long; nothing of a body, no key."""

import logging
import re
from collections.abc import Iterable
from typing import Final

from app.api.answers import write_json
from app.api.wire.lines import LineHandler
from app.api.wire.observed import RequestFacts
from app.domain.members import rfc3339

LOGGER: Final = "prevail.requests"
_log = logging.getLogger(LOGGER)
# W3C Trace Context: version, trace, parent, flags. Later versions may have more behind it.
_TRACE = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_LONGEST_PATH = 200


class RequestLog:
    """Writes the lines."""

    def begun(self) -> None:
        """Nothing is written yet."""

    def ended(self, facts: RequestFacts) -> None:
        """Write the line of a request."""
        if not _log.isEnabledFor(logging.INFO):
            return
        scope, state = facts.scope, facts.state
        line = {
            "at": rfc3339(facts.at),
            "request": state.get("request_id"),
            "trace": state.get("trace_id") or _trace_of(scope["headers"]),
            "key": state.get("key_id"),
            "project": state.get("project"),
            "method": scope["method"],
            "route": state.get("route"),
            "path": scope["path"][:_LONGEST_PATH],
            # None when the client went away before there was an answer.
            "status": facts.status,
            "code": state.get("code"),
            "milliseconds": round(facts.seconds * 1000, 3),
            "compute_milliseconds": round(facts.tally.compute * 1000, 3),
            "database_milliseconds": round(facts.tally.database * 1000, 3),
            "bytes_in": facts.received,
            "bytes_out": facts.sent,
        }
        text = write_json(line).decode()
        match _log.handlers:
            case [LineHandler() as lines] if not _log.propagate:
                lines.write_line(LOGGER, text)
            case _:
                # `info` would look for the line of code that calls it.
                _log.handle(logging.LogRecord(LOGGER, logging.INFO, __file__, 0, text, None, None))


def _trace_of(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The id of the trace that the caller is part of."""
    for name, value in headers:
        if name == b"traceparent":
            found = _TRACE.fullmatch(value.decode("latin-1"))
            return found and found[1]
    return None
