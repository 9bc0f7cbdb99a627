"""Tasks on a cluster of Dask: a scheduler, and workers that have the same code as the service."""

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

from app.domain.errors import ClusterUnavailable, NotEnoughMemory
from app.outbound.cluster.addresses import LOCAL
from app.outbound.cluster.local import local_scheduler
from app.outbound.cluster.tasks import carry_out, release
from app.services.processes.worker import Ending, Outcome

Task = TypeVar("Task")
Result = TypeVar("Result")

_CONNECT_SECONDS: Final = 10.0
# Workers may be started after the scheduler, and one that is lost may come again.
_WORKERS_SECONDS: Final = 30.0
_CLOSE_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 5.0
# Tasks under way for each thread of a worker: what is done waits there until those before it are.
_AHEAD: Final = 3


@dataclass(frozen=True, slots=True)
class DaskCluster:
    """The port `app.services.ports.Cluster`.

    Attributes:
        address: Of the scheduler, `tcp://host:port` or `tls://host:port`; `local` for one of this machine that is
            there as long as it is needed.
    """

    address: str

    @contextmanager
    def connected(self) -> Iterator["_Workers"]:
        """Its workers; at the end all is let go that is still under way. It is asked when there is the first task."""
        with ExitStack() as stack:
            yield _Workers(self.address, stack)


class _Workers:
    """The port `app.services.ports.Workers`."""

    def __init__(self, address: str, stack: ExitStack) -> None:
        self._address, self._stack = address, stack
        self._client: Any = None

    def in_order(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """What a function makes of each task, in the order of the tasks; what it raises is raised in its turn.

        Raises:
            ClusterUnavailable: it does not answer, has nobody who works, or works by another release.
        """
        yield from _results(self._asked(), function, tasks)

    def _asked(self) -> Any:
        if self._client is None:
            address = self._address
            if address == LOCAL:
                address = self._stack.enter_context(local_scheduler())
            self._client = _connected(address)
            self._stack.callback(self._client.close, _CLOSE_SECONDS)
        return self._client


def _connected(address: str) -> Any:
    # It is an extra, and takes a while to load.
    import dask
    from distributed import Client

    # Tasks have the samples with them that they are about.
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GB"})
    try:
        return Client(address, timeout=_CONNECT_SECONDS, set_as_default=False, direct_to_workers=True)
    except (OSError, ImportError) as error:
        raise ClusterUnavailable(
            f"expected a scheduler of Dask at PREVAIL_DASK_ADDRESS, it does not answer ({type(error).__name__})"
        ) from error
    except (RuntimeError, TypeError, ValueError) as error:
        # So it speaks of its own settings: certificates that are not there, or encryption that the address lacks.
        raise ClusterUnavailable(
            f"expected settings of Dask (DASK_DISTRIBUTED__COMM__…) that fit PREVAIL_DASK_ADDRESS: {str(error)[:200]}"
        ) from error


def _results(client: Any, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
    calls = (pickle.dumps(partial(function, task), protocol=5) for task in tasks)
    under_way, expected = deque[Any](), dict(release())
    while True:
        with _answering():
            free = _AHEAD * _threads(client) - len(under_way)
        # Tasks are made as they are taken, of files: what goes wrong there is not the cluster's.
        for call in islice(calls, max(free, 0)):
            with _answering():
                under_way.append(client.submit(carry_out, expected, call, pure=False))
        if not under_way:
            return
        with _answering():
            written = _written(client, under_way.popleft())
        outcome: Outcome = pickle.loads(written)  # noqa: S301 - the service's own
        if outcome.ending is Ending.MEMORY:
            raise NotEnoughMemory("expected pieces of data for which the workers of the cluster have the memory")
        if outcome.ending is Ending.RAISED:
            raise outcome.value
        yield outcome.value


@contextmanager
def _answering() -> Iterator[None]:
    """What the library says of a cluster that does not do its work."""
    from distributed import KilledWorker

    try:
        yield
    except ClusterUnavailable:
        raise
    except KilledWorker as error:
        raise ClusterUnavailable(
            "expected workers of the cluster that stay, several ended at the same piece of the data: do they have the "
            "memory for it?"
        ) from error
    except CancelledError as error:
        raise ClusterUnavailable(
            "expected a scheduler that stays, the connection to that of the cluster was lost; nothing was kept"
        ) from error
    except Exception as error:
        # Tasks return what they raise, so this is the cluster's: a scheduler that is gone, or without our code.
        raise ClusterUnavailable(f"the cluster cannot do it: {type(error).__name__}: {str(error)[:200]}") from error


def _threads(client: Any) -> int:
    """Threads of all workers.

    Raises:
        ClusterUnavailable: there are none, and none come.
    """
    found = sum(client.nthreads().values())
    if not found:
        try:
            client.wait_for_workers(1, timeout=_WORKERS_SECONDS)
        except TimeoutError as error:
            raise ClusterUnavailable("expected workers of the cluster, its scheduler has none") from error
        found = sum(client.nthreads().values())
    return max(int(found), 1)


def _written(client: Any, future: Any) -> bytes:
    """The result of a task, however long it takes, as long as there is somebody who works."""
    while True:
        try:
            result: bytes = future.result(timeout=_LOOK_SECONDS)
        except TimeoutError:
            _threads(client)
        else:
            return result
