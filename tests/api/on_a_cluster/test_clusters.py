"""Which clusters are taken, and what is said when one ends, has other code, or is none."""

import operator
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dask
import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from distributed import LocalCluster, Security
from pydantic import ValidationError

from app.domain.errors import ClusterUnavailable
from app.outbound.cluster import addresses, dask_cluster
from app.outbound.cluster.dask_cluster import DaskCluster
from app.outbound.cluster.tasks import release
from app.services.ports import Workers
from app.settings import Settings
from tests.api.jobs import ended, result
from tests.api.on_a_cluster.bodies import TWO, Interrupted, asked_of, counted, folded, predicted, without_files
from tests.api.referenced import settings_for

pytestmark = pytest.mark.slow


def test_what_goes_wrong_while_tasks_are_made_is_not_the_clusters(workers: Workers) -> None:
    """Such as a file of sorted samples that cannot be read: the cluster has nothing to do with it."""

    def tasks() -> Iterator[int]:
        yield from (-1, -2)
        raise OSError("no such file")

    with pytest.raises(OSError, match="no such file"):
        list(workers.in_order(operator.neg, tasks()))


def test_workers_of_another_release_are_refused(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "release", lambda: {**release(), "numpy": "1.0"})
    with pytest.raises(ClusterUnavailable, match=r"numpy: 1\.0 in the service"):
        next(workers.in_order(operator.call, [os.getpid]))


@pytest.fixture
def certificate(tmp_path: Path) -> dict[str, Any]:
    """Settings of Dask with a certificate for all who take part."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    begin = datetime.now(UTC) - timedelta(days=1)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + timedelta(days=3))
        .sign(key, hashes.SHA256())
    )
    (tmp_path / "cert.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    cert, secret = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    found: dict[str, Any] = {"distributed.comm.tls.ca-file": cert, "distributed.comm.require-encryption": True}
    for side in ("client", "scheduler", "worker"):
        found |= {f"distributed.comm.tls.{side}.cert": cert, f"distributed.comm.tls.{side}.key": secret}
    return found


def test_a_cluster_behind_certificates(certificate: dict[str, Any]) -> None:
    """Its settings are those of Dask. Without them, or by an address without them, it says what does not fit."""
    ports = {"host": "127.0.0.1", "dashboard_address": None}
    with (
        dask.config.set(certificate),
        LocalCluster(n_workers=1, processes=False, protocol="tls://", security=Security(), **ports) as local,
    ):
        address = local.scheduler_address
        assert address.startswith("tls://")
        with DaskCluster(address).connected() as workers:
            assert list(workers.in_order(operator.neg, range(3))) == [0, -1, -2]
        with (
            pytest.raises(ClusterUnavailable, match="encryption required"),
            DaskCluster(address.replace("tls", "tcp")).connected() as workers,
        ):
            list(workers.in_order(operator.neg, range(3)))
    with (
        pytest.raises(ClusterUnavailable, match="TLS expects"),
        DaskCluster(address).connected() as workers,
    ):
        list(workers.in_order(operator.neg, range(3)))


def test_what_is_no_address_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    for good in ("local", "tcp://scheduler:8786", "tls://10.0.0.1:8786"):
        assert Settings(dask_address=good).dask_address == good
    for wrong in ("scheduler:8786", "tcp://scheduler", "http://scheduler:8786", "tcp://user@scheduler:8786", "LOCAL"):
        with pytest.raises(ValidationError, match="expected tcp://host:port"):
            Settings(dask_address=wrong)
    monkeypatch.setattr(addresses, "find_spec", lambda _: None)
    with pytest.raises(ValidationError, match="extra dask"):
        Settings(dask_address="local")


@pytest.fixture(scope="module")
def settings(database_url: str, cluster: DaskCluster, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return settings_for(database_url, str(tmp_path_factory.mktemp("data")), dask_address=cluster.address)


def test_a_job_on_a_cluster_ends_as_any_other_and_fails_clearly_when_its_scheduler_is_killed(
    client: httpx.Client, settings: Settings, workers: Workers, tmp_path: Path
) -> None:
    many = 50_000
    random = np.random.default_rng(7)
    sure = random.random(many)
    label = np.where(random.random(many) < sure, "yes", "no")
    rows = pa.table({"label": label, "guess": label[::-1], "p0": 1.0 - sure, "p1": sure})
    folder = Path(settings.data_prefixes[0])
    pq.write_table(rows, folder / "all.parquet", row_group_size=5_000)
    data = {"uri": str(folder), "format": "parquet", "columns": {"y_true": "label", "probabilities": ["p0", "p1"]}}
    body = {"input": {"kind": "probabilities", "labels": TWO, "data": data}}

    whole, counts = folded(body, tmp_path), counted(predicted(body))
    for asked_for, found in ((body, whole), (predicted(body), counts)):
        job = client.post("/v1/metrics/compute", json=asked_for).json()
        assert without_files(result(client, job).json()) == found

    scheduler = asked_of(workers, os.getppid)[0]
    interrupted = Interrupted(workers, lambda: os.kill(scheduler, signal.SIGKILL))
    with pytest.raises(ClusterUnavailable):
        folded(body, tmp_path, interrupted, 5_000)
    assert interrupted.sent < 10
    # Sent again, without it, and with it while it is gone.
    assert folded(body, tmp_path) == whole
    problem = ended(client, client.post("/v1/metrics/compute", json=body).json())["problem"]
    assert (problem["status"], problem["code"]) == (503, "cluster_unavailable")
    assert "does not answer" in problem["detail"]
