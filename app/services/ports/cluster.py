"""Processes, perhaps of other machines, that do a part of the work."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class Workers(Protocol):
    """Who carries out tasks, several at once."""

    def in_order(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """What a function makes of each task, in the order of the tasks; what it raises is raised in its turn.

        Function, tasks and results have to be picklable. A few tasks are under way at once, so that neither tasks nor
        results pile up. What a lost process was at work on is done again by another.

        Raises:
            ClusterUnavailable: it does not answer, has nobody who works, or works by another release.
        """
        ...


class Cluster(Protocol):
    """Has workers. Can be sent to another process."""

    def connected(self) -> AbstractContextManager[Workers]:
        """Its workers; at the end all is let go that is still under way. It is asked when there is the first task."""
        ...


def workers_of(cluster: Cluster | None) -> AbstractContextManager[Workers | None]:
    """Those of a cluster; nobody where there is none."""
    return nullcontext() if cluster is None else cluster.connected()
