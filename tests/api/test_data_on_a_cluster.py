"""Data by reference on a cluster of Dask: the answers of one process, bit for bit, whoever has which piece and ends."""

import json
import operator
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
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

from app.api.answers import write_json
from app.api.bodies.referenced import Asked, PartsOfData, read_data
from app.api.v1.requests.referenced import folded_apart, with_columns, with_parts
from app.api.v1.reread import DataAgain
from app.domain.data import DataFormat, DataReference
from app.domain.errors import ClusterUnavailable, DataNotAllowed, InvalidInput
from app.domain.identifiers import new_id
from app.kernel.metrics.card import INPUTS_OF_CLASSES
from app.outbound.cluster import addresses, dask_cluster
from app.outbound.cluster.dask_cluster import DaskCluster
from app.outbound.cluster.local import local_scheduler
from app.outbound.cluster.tasks import release
from app.outbound.data.places import DataPlaces
from app.services.compare.elsewhere import Rereading
from app.services.compare.in_parts import pair_in_parts
from app.services.estimands import make_estimand
from app.services.evaluate.apart import evaluate_alone
from app.services.evaluate.evaluations import NewEvaluation
from app.services.evaluate.folding.scores import Folding
from app.services.ports.cluster import Result, Task, Workers
from app.services.runs.aligned import Runs
from app.services.runs.pairing import PairingMode
from app.services.runs.reading import KeptSamples
from app.services.stored import unkept_record
from app.settings import Settings
from tests.api.answers import Json
from tests.api.jobs import ended, result
from tests.api.referenced import settings_for

ROWS = 1200
BUDGET = 1 << 16
TWO, THREE = ["no", "yes"], ["a", "b", "c"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[DaskCluster]:
    """A scheduler and two workers, each a process of its own. The last test kills the scheduler."""
    with local_scheduler(workers=2) as address:
        yield DaskCluster(address)


@pytest.fixture
def workers(cluster: DaskCluster) -> Iterator[Workers]:
    with cluster.connected() as connected:
        yield connected


def table(classes: list[str]) -> pa.Table:
    """Probabilities, many of which are the same, and what was guessed."""
    random = np.random.default_rng(len(classes))
    shares = random.dirichlet(np.ones(len(classes)), ROWS)
    shares[::3] = shares[::3].round(2)
    shares[:, 0] = np.clip(1.0 - shares[:, 1:].sum(axis=1), 0.0, 1.0)
    truth, guess = ([classes[code] for code in random.integers(0, len(classes), ROWS)] for _ in range(2))
    return pa.table({"label": truth, "guess": guess, **{f"p{place}": row for place, row in enumerate(shares.T)}})


def written(
    folder: Path, classes: list[str], rows: pa.Table | None = None, cuts: Iterable[int] = (), size: int = 100
) -> Json:
    """Rows in files that end at the cuts, and a request that names them."""
    folder.mkdir()
    rows = table(classes) if rows is None else rows
    for start, stop in pairwise([0, *cuts, ROWS]):
        pq.write_table(rows.slice(start, stop - start), folder / f"{start:05}.parquet", row_group_size=size)
    columns = {"y_true": "label", "probabilities": [f"p{place}" for place in range(len(classes))]}
    data = {"uri": str(folder), "format": "parquet", "columns": columns}
    return {"input": {"kind": "probabilities", "labels": classes, "data": data}}


def predicted(body: Json) -> Json:
    """The same files, of which the guess is read."""
    data = body["input"]["data"] | {"columns": {"y_true": "label", "y_pred": "guess"}}
    return {"input": {"kind": "predictions", "data": data}}


def asked(body: Json, piece_rows: int) -> Asked:
    source, data = body["input"], body["input"]["data"]
    reference = DataReference(data["uri"], DataFormat.PARQUET, data["columns"])
    return Asked(reference, source["kind"], source.get("labels"), BUDGET, piece_rows=piece_rows)


def places_of(body: Json) -> DataPlaces:
    return DataPlaces((body["input"]["data"]["uri"],))


def parts(body: Json, piece_rows: int) -> PartsOfData:
    return PartsOfData(places_of(body), asked(body, piece_rows))


def said(new: NewEvaluation) -> Json:
    """Everything that is answered, but how the rows lay in files."""
    return without_files(json.loads(write_json(evaluate_alone(new, None)[0])))


def without_files(answer: Json) -> Json:
    facts = answer["input"].pop("data")
    assert facts["rows"] == answer["input"]["n_samples"]
    return answer


def folded(body: Json, folder: Path, workers: Workers | None = None, piece_rows: int = 200) -> Json:
    text = json.dumps(body).encode()
    found = said(with_parts(text, parts(body, piece_rows), workers, budget=BUDGET, folder=folder))
    assert not [*folder.glob("run-*")]
    return found


def counted(body: Json, workers: Workers | None = None, piece_rows: int = 200) -> Json:
    return said(with_columns(json.dumps(body).encode(), read_data(places_of(body), asked(body, piece_rows), workers)))


def test_fifty_random_splits_and_orders_say_the_same(workers: Workers, tmp_path: Path) -> None:
    random = np.random.default_rng(15)
    whole = [folded(written(tmp_path / one[0], one, size=ROWS), tmp_path, None, ROWS) for one in (TWO, THREE)]
    splits, tasks = [], []
    for number in range(50):
        classes = (TWO, THREE)[number % 2]
        cuts = np.sort(random.integers(1, ROWS, random.integers(1, 4))).tolist()
        shuffled = table(classes).take(random.permutation(ROWS))
        body = written(tmp_path / f"{number}", classes, shuffled, cuts, int(random.integers(100, ROWS)))
        one = parts(body, int(random.integers(100, ROWS)))
        splits.append((one, Folding(BUDGET, tmp_path)))
        text = json.dumps(body).encode()
        tasks += [(number, partial(folded_apart, text, one.reading, piece)) for piece in one.pieces]
    tasks = [tasks[place] for place in random.permutation(len(tasks))]
    assert len(tasks) > 150
    states = workers.in_order(operator.call, [task for _, task in tasks])
    for (number, _), state in zip(tasks, states, strict=True):
        assert isinstance(state, Folding)
        splits[number][1].merge(state)
    for number, (one, fold) in enumerate(splits):
        with closing(fold):
            assert said(fold.finish(one.facts(fold.rows))) == whole[number % 2]


class Interrupted:
    """Workers to whom something happens when a task is sent to them, with others under way and others waiting."""

    def __init__(self, workers: Workers, happens: Callable[[], object]) -> None:
        self.workers, self.happens, self.sent = workers, happens, 0

    def in_order(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        return self.workers.in_order(function, map(self.told, tasks))

    def told(self, task: Task) -> Task:
        self.sent += 1
        if self.sent == 5:
            self.happens()
        return task


def asked_of(workers: Workers, function: Callable[[], int]) -> list[int]:
    """What workers say."""
    return sorted({*workers.in_order(operator.call, [function] * 20)})


def test_pieces_of_any_size_say_the_same_also_when_a_worker_is_killed(workers: Workers, tmp_path: Path) -> None:
    probabilities = written(tmp_path / "three", THREE, cuts=[500])
    predictions = predicted(written(tmp_path / "two", TWO, cuts=[300, 900]))
    alone, counts = folded(probabilities, tmp_path), counted(predictions)
    assert alone["input"]["n_samples"] == counts["input"]["n_samples"] == ROWS
    assert folded(probabilities, tmp_path, workers, 350) == alone
    assert counted(predictions, workers, 500) == counts
    victim = asked_of(workers, os.getpid)[0]
    interrupted = Interrupted(workers, lambda: os.kill(victim, signal.SIGKILL))
    assert folded(probabilities, tmp_path, interrupted, 100) == alone
    assert interrupted.sent > 12
    assert victim not in asked_of(workers, os.getpid)


def test_groups_of_probabilities_are_folded_by_the_cluster(workers: Workers, tmp_path: Path) -> None:
    houses = [f"house {one}" for one in np.random.default_rng(4).integers(0, 40, ROWS)]
    body = written(tmp_path / "grouped", THREE, table(THREE).append_column("house", pa.array(houses)), cuts=[500])
    body["input"]["data"]["columns"]["group_id"] = "house"
    here = folded(body, tmp_path)
    assert here["groups"]["n_groups"] == 40
    assert here["intervals"]["roc_auc@a"]["method"] == "cluster_delong_logit"
    assert folded(body, tmp_path, workers, 170) == here


def by_both(body: Json, workers: Workers, folder: Path) -> Json:
    """What one process says, and the workers too."""
    found: list[Json] = []
    for one in (None, workers):
        new = with_parts(json.dumps(body).encode(), parts(body, 100), one, budget=BUDGET, folder=folder)
        found.append(json.loads(write_json(evaluate_alone(new, None)[0])))
    assert found[0] == found[1]
    return found[0]


def test_queries_are_read_and_looked_at_by_the_cluster(workers: Workers, tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    rows = pa.table({"user": random.integers(0, 90, ROWS), "grade": random.random(ROWS), "score": random.random(ROWS)})
    (tmp_path / "data").mkdir()
    for start in range(0, ROWS, 300):
        pq.write_table(rows.slice(start, 300), tmp_path / "data" / f"{start:04}.parquet", row_group_size=100)
    columns = {"query_id": "user", "relevance": "grade", "score": "score"}
    body = {"input": {"kind": "ranking", "data": {"uri": str(tmp_path / "data"), "columns": columns}}}
    assert by_both(body, workers, tmp_path)["input"]["n_samples"] == 90


def test_sets_of_labels_are_counted_by_the_cluster(workers: Workers, tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    names = {kind: [f"{kind}{label}" for label in range(4)] for kind in ("y_true", "y_pred")}
    rows = pa.table({name: random.integers(0, 2, ROWS) for of in names.values() for name in of})
    (tmp_path / "data").mkdir()
    pq.write_table(rows, tmp_path / "data" / "all.parquet", row_group_size=100)
    source = {"kind": "multilabel", "labels": [*"abcd"], "data": {"uri": str(tmp_path / "data"), "columns": names}}
    assert by_both({"input": source}, workers, tmp_path)["input"]["n_samples"] == ROWS


def test_probabilities_of_labels_are_folded_by_the_cluster(workers: Workers, tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    names = {kind: [f"{kind}{label}" for label in range(3)] for kind in ("y_true", "probabilities")}
    columns = {name: random.integers(0, 2, ROWS) for name in names["y_true"]} | {"house": random.integers(0, 40, ROWS)}
    rows = pa.table(columns | {name: random.random(ROWS).round(2) for name in names["probabilities"]})
    (tmp_path / "data").mkdir()
    pq.write_table(rows, tmp_path / "data" / "all.parquet", row_group_size=100)
    source: Json = {"kind": "multilabel", "labels": [*"abc"], "data": {"uri": str(tmp_path / "data"), "columns": names}}
    options = {"intervals": "all", "draws": 200}
    found = by_both({"input": source, "options": options}, workers, tmp_path)
    assert found["input"]["rows"] == ROWS
    assert found["intervals"]["roc_auc@a"]["low"] is not None
    in_houses = {**source, "data": {**source["data"], "columns": {**names, "group_id": "house"}}}
    found = by_both({"input": in_houses, "options": options}, workers, tmp_path)
    assert found["intervals"]["roc_auc_ovr_macro"]["given"] == "groups"


def test_the_first_fault_of_the_data_is_the_one_of_one_process(workers: Workers, tmp_path: Path) -> None:
    rows = table(TWO)
    shares = rows["p1"].to_numpy().copy()
    shares[[750, 1100]] = 2.0
    body = written(tmp_path / "data", TWO, rows.set_column(3, "p1", pa.array(shares)), [600])
    said_of: list[str] = []
    for one in (None, workers):
        with pytest.raises(InvalidInput, match="row 750 of those read") as caught:
            folded(body, tmp_path, one)
        said_of.append(str(caught.value.faults))
    assert said_of[0] == said_of[1]
    missing = rows.set_column(1, "guess", pa.array([None if row == 1150 else "no" for row in range(ROWS)], pa.string()))
    body = predicted(written(tmp_path / "missing", TWO, missing, [600]))
    for one in (None, workers):
        with pytest.raises(InvalidInput, match="'guess' at row 1150"):
            counted(body, one)


def test_two_runs_are_read_and_joined_by_the_cluster(cluster: DaskCluster, tmp_path: Path) -> None:
    places, records, kept = DataPlaces((str(tmp_path),)), [], {}
    rows = table(TWO).append_column("id", pa.array([f"id-{one}" for one in range(ROWS)]))
    for number in range(2):
        guess = pa.array(np.roll(rows["guess"], number))
        shuffled = rows.set_column(1, "guess", guess).take(np.random.default_rng(number).permutation(ROWS))
        body = predicted(written(tmp_path / str(number), TWO, shuffled, [200, 500, 900]))
        body["input"]["data"]["columns"]["sample_id"] = "id"
        whole = replace(asked(body, ROWS), memory_bytes=1 << 20)
        source = with_columns(json.dumps(body).encode(), read_data(places, whole)).source
        records.append(replace(unkept_record(source), id=new_id()))
        assert source.samples is not None
        kept[records[number].id] = source.samples
    expected = Runs.align(records).pair(KeptSamples.of(kept), PairingMode.TRUE).pairing.joint
    for one in (None, cluster):
        (folder := tmp_path / f"with-{one is not None}").mkdir()
        reading = Rereading(DataAgain(places, one), BUDGET, folder, one)
        found = pair_in_parts(reading, Runs.align(records), KeptSamples(), 1.0).pairing.joint
        assert found is not None
        assert expected is not None
        for name in ("truth", "predictions", "counts"):
            assert np.array_equal(getattr(found, name), getattr(expected, name))


def test_what_goes_wrong_while_tasks_are_made_is_not_the_clusters(workers: Workers) -> None:
    """Such as a file of sorted samples that cannot be read: the cluster has nothing to do with it."""

    def tasks() -> Iterator[int]:
        yield from (-1, -2)
        raise OSError("no such file")

    with pytest.raises(OSError, match="no such file"):
        list(workers.in_order(operator.neg, tasks()))


def test_probabilities_of_two_runs_are_compared_by_the_cluster(cluster: DaskCluster, tmp_path: Path) -> None:
    places, records = DataPlaces((str(tmp_path),)), []
    for number in range(2):
        rows = table(THREE).append_column("id", pa.array(np.arange(ROWS)))
        for place in range(len(THREE)):
            rows = rows.set_column(2 + place, f"p{place}", pa.array(np.roll(rows[f"p{place}"], number)))
        body = written(tmp_path / str(number), THREE, rows.take(np.random.default_rng(number).permutation(ROWS)), [700])
        body["input"]["data"]["columns"]["sample_id"] = "id"
        whole = replace(asked(body, ROWS), memory_bytes=1 << 20)
        source = with_columns(json.dumps(body).encode(), read_data(places, whole)).source
        records.append(replace(unkept_record(source), id=new_id()))
    expressions = [make_estimand(text, THREE, None, INPUTS_OF_CLASSES).expression for text in ("log_loss", "roc_auc@*")]
    found = []
    for one in (None, cluster):
        (folder := tmp_path / f"with-{one is not None}").mkdir()
        reading = Rereading(DataAgain(places, one), BUDGET, folder, one)
        folded_runs = pair_in_parts(reading, Runs.align(records), KeptSamples(), 0.9, expressions).folded
        assert folded_runs is not None
        values = [value for expression in expressions for value in folded_runs.of(expression) or ()]
        found.append([(value.runs.values.tolist(), value.runs.covariance.tolist()) for value in values])
    assert len(found[0]) == 4
    assert found[0] == found[1]


def test_a_worker_reads_what_the_operator_allows_and_nothing_else(workers: Workers, tmp_path: Path) -> None:
    body = written(tmp_path / "allowed", TWO)
    own, secret = (parts(one, ROWS) for one in (body, written(tmp_path / "secret", TWO)))
    piece = secret.pieces[0]
    (tmp_path / "allowed" / "link.parquet").symlink_to(piece.file.path)
    paths = piece.file.path, f"{tmp_path}/allowed/../secret/00000.parquet", f"{tmp_path}/allowed/link.parquet"
    pieces = [replace(piece, file=replace(piece.file, path=path)) for path in paths]
    task = partial(folded_apart, json.dumps(body).encode(), own.reading)
    for hostile in pieces:
        states = workers.in_order(task, [own.pieces[0], hostile])
        assert isinstance(next(states), Folding)
        with pytest.raises(DataNotAllowed):
            next(states)
    changed = replace(own.pieces[0], file=replace(own.pieces[0].file, version="another"))
    with pytest.raises(InvalidInput, match="stay as they are"):
        next(workers.in_order(task, [changed]))


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
