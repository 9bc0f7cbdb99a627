"""Where lines about requests go."""

import logging
from typing import TextIO


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes what is logged as it is, line by line.

    A line that is whole already need not become a record: that goes through fifteen functions, which the processor has
    forgotten again from one report to the next.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.setFormatter(logging.Formatter("%(message)s"))

    def write_line(self, logger: str, text: str) -> None:
        """Write a line of a logger; what keeps it from being written is told as the library tells it."""
        self.acquire()
        try:
            self.stream.write(text + self.terminator)
            self.flush()
        except Exception:  # noqa: BLE001 - as `logging` does: no request fails for its line
            self.handleError(logging.LogRecord(logger, logging.INFO, __file__, 0, text, None, None))
        finally:
            self.release()
