"""What Prometheus reads: the metrics of this process, or of all workers of the machine, which share a folder."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

# prometheus_client looks at it when it is imported.
FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"


class Exposition:
    """Writes the metrics when they are asked for."""

    def __init__(self, registry: CollectorRegistry, look: Callable[[], None]) -> None:
        self._registry, self._look = registry, look

    async def text(self) -> bytes:
        """The metrics in the text format of Prometheus, with what this process finds now."""
        self._look()
        folder = os.environ.get(FOLDER_VARIABLE)
        if folder is None:
            return generate_latest(self._registry)
        # Files of all workers are read, which takes a while.
        return await asyncio.to_thread(_of_all_workers, Path(folder))


def _of_all_workers(folder: Path) -> bytes:
    for path in folder.glob("gauge_live*_*.db"):
        process = int(path.stem.rpartition("_")[2])
        if not _lives(process):
            # What it had counted stays, how it was is over.
            mark_process_dead(process, str(folder))  # type: ignore[no-untyped-call]  # the library leaves it untyped
    gathered = CollectorRegistry()
    MultiProcessCollector(gathered, str(folder))  # type: ignore[no-untyped-call]  # likewise
    return generate_latest(gathered)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
