"""Progress of an upload: passed to a function of the user, or drawn as a line."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TextIO

WIDTH: Final = 20
# Seconds between two drawings: on a terminal, and in a log, where every one is a line.
_REDRAWN: Final = 0.1
_LOGGED: Final = 10.0
# Uploads that nobody asked a bar for show one from then on.
_LONG: Final = 1.0


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of an upload.

    Attributes:
        done: How many of ``total`` are on their way.
        unit: What is counted: ``rows`` or ``bytes``.
        sent: Bytes sent.
        seconds: Since the upload began.
    """

    what: str
    done: int
    total: int
    unit: str
    sent: int
    seconds: float

    @property
    def share(self) -> float:
        """Finished part, between 0 and 1."""
        return self.done / self.total if self.total else 1.0


Watcher = Callable[[Progress], None]


class Bar:
    """Draws progress on the standard error: a line drawn again on a terminal, else a line every ten seconds.

    Args:
        quiet: Seconds of an upload in which nothing is drawn; one that ends by then is not drawn at all.
    """

    def __init__(self, stream: TextIO | None = None, quiet: float = 0.0) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._drawn, self._quiet = float("-inf"), quiet

    def __call__(self, progress: Progress) -> None:
        """Draw, unless it was drawn shortly before."""
        if progress.seconds < self._quiet:
            return
        drawn_again = self._stream.isatty()
        ended = progress.done >= progress.total
        now = time.monotonic()
        if not ended and now - self._drawn < (_REDRAWN if drawn_again else _LOGGED):
            return
        self._drawn = now
        line = drawn(progress, unicode=_can_draw(self._stream))
        end = "\n" if ended or not drawn_again else ""
        self._stream.write(("\r\x1b[K" if drawn_again else "") + line + end)
        self._stream.flush()


def _can_draw(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "") == "utf8"


def drawn(progress: Progress, *, unicode: bool) -> str:
    """The line."""
    filled = int(progress.share * WIDTH)
    full, empty = ("━", "─") if unicode else ("#", ".")
    bar = full * filled + empty * (WIDTH - filled)
    left = progress.seconds * (1 / progress.share - 1) if progress.share else 0.0
    amount = f"{progress.done:,} of {progress.total:,} {progress.unit}"
    if progress.unit == "bytes":
        amount = f"{progress.done / 1e6:.1f} of {progress.total / 1e6:.1f} MB"
    return f"uploading  {progress.what}  {amount}  {progress.share * 100:3.0f} %  {bar}  {left:.0f} s left"


def watcher(progress: bool | Watcher | None) -> Watcher | None:
    """Return the watcher of an upload: none, a bar, or a function of the user's.

    None is a bar for somebody who looks on, at a terminal or in a notebook, where the upload takes a while.
    """
    if progress is None:
        return Bar(quiet=_LONG) if sys.stderr.isatty() or "ipykernel" in sys.modules else None
    return Bar() if progress is True else progress or None


def watched(
    parts: Iterator[tuple[int, bytes]], what: str, total: int, unit: str, watch: Watcher | None
) -> Iterator[bytes]:
    """The parts of a body, of which each comes with how far it brings the upload."""
    begun, sent = time.monotonic(), 0
    for done, part in parts:
        yield part
        sent += len(part)
        if watch is not None:
            watch(Progress(what, done, total, unit, sent, time.monotonic() - begun))
