"""What ends and comes back: killed databases, workers and services."""

import contextlib
import os
import re
import signal
import time
from pathlib import Path

import pytest

from app import serving
from app.embedded.cluster import wait_until
from tests.cli.conftest import Service

pytestmark = pytest.mark.slow


def postmaster_of(service: Service) -> int:
    return int((service.data_dir / "cluster" / "postmaster.pid").read_text().split()[0])


def runs_again(service: Service, before: int) -> bool:
    with contextlib.suppress(OSError, IndexError):
        return postmaster_of(service) != before and "ready" in (service.data_dir / "cluster/postmaster.pid").read_text()
    return False


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_killed_database_comes_back_and_is_stopped_with_the_service(made_service: Service, workers: str) -> None:
    service = made_service
    service.settings["PREVAIL_WORKERS"] = workers
    service.start()
    before = postmaster_of(service)
    os.kill(before, signal.SIGKILL)
    assert wait_until(lambda: runs_again(service, before), 10)
    said = service.stop(signal.SIGTERM)
    assert service.process is not None
    assert service.process.returncode == 0
    assert service.leftovers() == []
    assert len(re.findall(r"ERROR prevail\.embedded: the embedded Postgres ended \(SIGKILL\)", said)) == 1
    assert len(re.findall(r"WARNING prevail\.embedded: the embedded Postgres is back after", said)) == 1


def test_a_killed_worker_is_replaced(made_service: Service) -> None:
    service = made_service
    service.settings["PREVAIL_WORKERS"] = "2"
    service.start()
    first = int(service.ask()["pid"])
    os.kill(first, signal.SIGKILL)
    assert wait_until(lambda: service.answers() and service.ask()["pid"] != first, 10)
    service.stop(signal.SIGTERM)


@pytest.mark.parametrize(
    ("number", "workers", "work"),
    # Every two of them together.
    [
        (signal.SIGTERM, "1", "/busy"),
        (signal.SIGTERM, "2", "/stuck"),
        (signal.SIGINT, "1", "/stuck"),
        (signal.SIGINT, "2", "/busy"),
    ],
)
def test_a_stop_does_not_wait_for_work_that_does_not_end(
    made_service: Service, workers: str, number: signal.Signals, work: str
) -> None:
    service = made_service
    service.settings |= {"PREVAIL_WORKERS": workers, "PREVAIL_SHUTDOWN_SECONDS": "1"}
    service.start()
    service.send(work)
    begin = time.monotonic()
    said = service.stop(number)
    assert time.monotonic() - begin < 1 + serving.GRACE_SECONDS + 6
    assert service.process is not None
    assert service.process.returncode == 0
    # A worker does not wait for its threads: the signal that it was sent ends it.
    cut_off = (work, workers) != ("/busy", "2")
    assert ("work that does not end is cut off 6 s after the stop began" in said) == cut_off
    assert service.leftovers() == []


def test_a_killed_service_leaves_no_busy_worker(made_service: Service) -> None:
    service = made_service
    service.settings |= {"PREVAIL_WORKERS": "2", "PREVAIL_SHUTDOWN_SECONDS": "1"}
    service.start()
    workers = {int(service.ask("/busy")["pid"]) for _ in range(10)}
    service.send("/stuck")
    assert service.process is not None
    os.kill(service.process.pid, signal.SIGKILL)
    service.process.communicate(timeout=60)
    assert wait_until(lambda: not any(Path(f"/proc/{each}").exists() for each in workers), 20)
