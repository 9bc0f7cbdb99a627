"""A cluster on this machine, to try out what a cluster does: ``python -m app.outbound.cluster.local 2``.

It is there for one job, in processes of its own, and ends with whoever started it.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import app
from app.domain.errors import ClusterUnavailable


@contextmanager
def local_scheduler(workers: int | None = None) -> Iterator[str]:
    """The address of the scheduler of a cluster with so many workers, or one for each processor.

    Raises:
        ClusterUnavailable: it does not start.
    """
    root = str(Path(app.__file__).parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    # A process that computes may have no children by `multiprocessing`, whose end nobody would see to. These see that
    # the other end of their input is gone.
    with subprocess.Popen(
        [sys.executable, "-m", "app.outbound.cluster.local", str(workers or os.cpu_count() or 1)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    ) as process:
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - asked for above
        try:
            address = process.stdout.readline().strip()
            if not address:
                raise ClusterUnavailable("the local cluster (PREVAIL_DASK_ADDRESS=local) did not start")
            yield address
        finally:
            process.stdin.close()


def main() -> None:
    """Be the scheduler, with workers, until the input ends."""
    from distributed import LocalCluster

    # All of it listens on this machine only; None would let pages of its state be read from others.
    here = "127.0.0.1"
    with LocalCluster(
        n_workers=int(sys.argv[1]),
        threads_per_worker=1,
        processes=True,
        host=here,
        dashboard_address=f"{here}:0",
        worker_dashboard_address=f"{here}:0",
    ) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
