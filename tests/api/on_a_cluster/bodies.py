"""Data in files, requests that name it, and what one process and a cluster make of it."""

import json
import operator
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.api.answers import write_json
from app.api.bodies.referenced import Asked, PartsOfData, read_data
from app.api.v1.requests.referenced import with_columns, with_parts
from app.domain.data import DataFormat, DataReference
from app.outbound.data import DataPlaces
from app.services.evaluate.apart import evaluate_alone
from app.services.evaluate.evaluations import NewEvaluation
from app.services.ports import ClusterTask, Result, Workers
from tests.api.answers import Json
from tests.engine import ENGINE

ROWS = 1200
BUDGET = 1 << 16
TWO, THREE = ["no", "yes"], ["a", "b", "c"]


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
    found = said(with_parts(text, parts(body, piece_rows), workers, engine=ENGINE, budget=BUDGET, folder=folder))
    assert not [*folder.glob("run-*")]
    return found


def counted(body: Json, workers: Workers | None = None, piece_rows: int = 200) -> Json:
    return said(with_columns(json.dumps(body).encode(), read_data(places_of(body), asked(body, piece_rows), workers)))


class Interrupted:
    """Workers to whom something happens when a task is sent to them, with others under way and others waiting."""

    def __init__(self, workers: Workers, happens: Callable[[], object]) -> None:
        self.workers, self.happens, self.sent = workers, happens, 0

    def in_order(self, function: Callable[[ClusterTask], Result], tasks: Iterable[ClusterTask]) -> Iterator[Result]:
        return self.workers.in_order(function, map(self.told, tasks))

    def told(self, task: ClusterTask) -> ClusterTask:
        self.sent += 1
        if self.sent == 5:
            self.happens()
        return task


def asked_of(workers: Workers, function: Callable[[], int]) -> list[int]:
    """What workers say."""
    return sorted({*workers.in_order(operator.call, [function] * 20)})


def by_both(body: Json, workers: Workers, folder: Path, budget: int = BUDGET) -> Json:
    """What one process says, and the workers too."""
    found: list[Json] = []
    for one in (None, workers):
        new = with_parts(json.dumps(body).encode(), parts(body, 100), one, engine=ENGINE, budget=budget, folder=folder)
        found.append(json.loads(write_json(evaluate_alone(new, None)[0])))
    assert found[0] == found[1]
    return found[0]
