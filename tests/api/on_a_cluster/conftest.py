"""A cluster for each module."""

from collections.abc import Iterator

import pytest

from app.outbound.cluster.dask_cluster import DaskCluster
from app.outbound.cluster.local import local_scheduler
from app.services.ports import Workers


@pytest.fixture(scope="module")
def cluster() -> Iterator[DaskCluster]:
    """A scheduler and two workers, each a process of its own. The last test of a module may kill the first."""
    with local_scheduler(workers=2) as address:
        yield DaskCluster(address)


@pytest.fixture
def workers(cluster: DaskCluster) -> Iterator[Workers]:
    with cluster.connected() as connected:
        yield connected
