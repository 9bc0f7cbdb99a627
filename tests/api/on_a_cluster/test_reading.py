"""Data by reference on a cluster of Dask: the answers of one process, bit for bit, whoever has which piece and ends."""

import json
import operator
import os
import signal
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.api.bodies.referenced import read_data
from app.api.v1.requests.referenced import folded_apart, with_columns
from app.api.v1.reread import DataAgain
from app.domain.errors import DataNotAllowed, InvalidInput
from app.domain.identifiers import new_id
from app.kernel.metrics.card import INPUTS_OF_CLASSES
from app.outbound.cluster.dask_cluster import DaskCluster
from app.outbound.data import DataPlaces
from app.services.compare.in_parts import Rereading, pair_in_parts
from app.services.estimands import make_estimand
from app.services.evaluate.folding.scores import Folding
from app.services.ports import Workers
from app.services.runs.aligned import Runs
from app.services.runs.pairing import KeptSamples, PairingMode
from app.services.stored import unkept_record
from tests.api.answers import Json
from tests.api.on_a_cluster.bodies import (
    BUDGET,
    ROWS,
    THREE,
    TWO,
    Interrupted,
    asked,
    asked_of,
    by_both,
    counted,
    folded,
    parts,
    predicted,
    said,
    table,
    written,
)
from tests.engine import ENGINE

pytestmark = pytest.mark.slow


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


def test_pieces_of_any_size_say_the_same_also_when_a_worker_is_killed(workers: Workers, tmp_path: Path) -> None:
    probabilities = written(tmp_path / "three", THREE, cuts=[500])
    probabilities["options"] = {"metrics": ["calibration_intercept@*", "calibration_slope@*", "roc_auc_ovr_micro"]}
    predictions = predicted(written(tmp_path / "two", TWO, cuts=[300, 900]))
    alone, counts = folded(probabilities, tmp_path), counted(predictions)
    assert alone["input"]["n_samples"] == counts["input"]["n_samples"] == ROWS
    assert all(alone["requested"]["calibration_slope@*"].values())
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


def test_weights_of_probabilities_are_folded_by_the_cluster(workers: Workers, tmp_path: Path) -> None:
    heavy = np.exp(np.random.default_rng(8).normal(scale=3.0, size=ROWS))
    for number, classes in enumerate((TWO, THREE)):
        rows = table(classes).append_column("weight", pa.array(heavy))
        body = written(tmp_path / f"{number}", classes, rows, cuts=[500])
        body["input"]["data"]["columns"]["sample_weight"] = "weight"
        found = by_both(body, workers, tmp_path)
        assert found["weights"]["n_samples"] == ROWS
        assert found["intervals"][f"roc_auc@{classes[0]}"]["method"] == "weighted_delong_logit"
        backwards = written(tmp_path / f"{number} backwards", classes, rows.take(np.arange(ROWS)[::-1]), cuts=[90, 700])
        backwards["input"]["data"]["columns"]["sample_weight"] = "weight"
        again = by_both(backwards, workers, tmp_path)
        del found["input"]["data"], again["input"]["data"]
        assert again == found


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
    rows = rows.append_column("weight", pa.array(random.lognormal(size=ROWS)))
    (tmp_path / "data").mkdir()
    pq.write_table(rows, tmp_path / "data" / "all.parquet", row_group_size=100)
    data: Json = {"uri": str(tmp_path / "data"), "columns": names}
    source: Json = {"kind": "multilabel", "labels": [*"abcd"], "data": data}
    assert by_both({"input": source}, workers, tmp_path)["input"]["n_samples"] == ROWS
    columns: Json = {"sample_weight": "weight"} | {kind: own[:2] for kind, own in names.items()}
    weighted = {**source, "labels": [*"ab"], "data": {**data, "columns": columns}}
    assert by_both({"input": weighted}, workers, tmp_path, 1 << 17)["weights"]["n_samples"] == ROWS


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
        reading = Rereading(DataAgain(places, one), BUDGET, folder, ENGINE, one)
        found = pair_in_parts(reading, Runs.align(records), KeptSamples(), 1.0).pairing.joint
        assert found is not None
        assert expected is not None
        for name in ("truth", "predictions", "counts"):
            assert np.array_equal(getattr(found, name), getattr(expected, name))


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
        reading = Rereading(DataAgain(places, one), BUDGET, folder, ENGINE, one)
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
