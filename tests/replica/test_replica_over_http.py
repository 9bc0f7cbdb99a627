"""Lists over HTTP are read at a standby; what has an id is not."""

import time
from collections.abc import Iterator

import httpx
import pytest
from fastapi.routing import APIRoute
from pydantic import SecretStr

from app.api.recency import is_list
from app.api.ui import pages as ui
from app.embedded import EmbeddedPostgres
from app.main import ROUTERS
from app.settings import Authentication, MetricsAccess, Settings
from tests.replica.standby import Standby
from tests.serving import Served


@pytest.fixture(scope="module")
def client(primary: EmbeddedPostgres, standby: Standby) -> Iterator[httpx.Client]:
    settings = Settings(
        database_url=SecretStr(primary.dsn()),
        read_database_url=SecretStr(standby.dsn(role="lists")),
        read_lag_seconds=3600,
        authentication=Authentication.off,
        metrics_access=MetricsAccess.open,
        job_concurrency=0,
    )
    with Served(settings) as url, httpx.Client(base_url=url, timeout=60) as client:
        deadline = time.monotonic() + 30
        while "prevail_replica_in_use 1.0" not in client.get("/metrics").text:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield client


def test_which_answers_may_be_old() -> None:
    given = [route for router in (*ROUTERS, *ui.ROUTERS) for route in router.routes if isinstance(route, APIRoute)]
    marked = {(route.path, *(route.methods or ())) for route in given if is_list(route.endpoint)}
    nouns = ("evaluations", "models", "datasets", "comparisons", "gates", "gates/{name}/checks", "leaderboard")
    pages = ("/ui", "/ui/comparisons", "/ui/gates", "/ui/gates/{name}")
    assert marked == {(path, "GET") for path in (*(f"/v1/{noun}" for noun in nouns), *pages)}


BODY = {"dataset": {"name": "d"}, "input": {"kind": "confusion_matrix", "matrix": [[5, 1], [2, 4]]}}
NOW = {"Cache-Control": "no-cache"}


def test_over_http(client: httpx.Client, standby: Standby, project: str) -> None:
    client.headers["X-Prevail-Project"] = project

    def post(name: str) -> str:
        answer = client.post("/v1/evaluations", json={"model": {"name": name}, **BODY})
        assert answer.status_code == 201, answer.text
        identifier: str = answer.json()["id"]
        return identifier

    def names(path: str, **headers: str) -> list[str]:
        answer = client.get(path, headers=headers)
        assert answer.status_code == 200, answer.text
        return [one["model"]["name"] if "model" in one else one["name"] for one in answer.json()["items"]]

    post("first")
    standby.pause()
    # The first of a project is seen at once, wherever it is asked for.
    second = post("second")
    gate = {"rules": [{"metric": "accuracy", "min": 0.1}]}
    assert client.put("/v1/gates/g", json=gate).status_code == 201
    for path in ("/v1/evaluations?sort=created_at", "/v1/models", "/v1/leaderboard?dataset=d&metric=accuracy"):
        assert names(path) == ["first"], path
        assert sorted(names(path, **NOW)) == ["first", "second"], path
        assert sorted(names(path, **{"Cache-Control": "max-age=0"})) == ["first", "second"], path
    assert client.get(f"/v1/evaluations/{second}").status_code == 200
    assert client.get("/v1/models/second").json()["evaluations"] == 1
    assert names("/v1/gates") == ["g"]
    # What decides takes the latest there is.
    checked = client.post("/v1/gates/g/checks", json={"evaluation": {"dataset": {"name": "d"}}})
    assert checked.json()["evaluation"]["id"] == second
    assert client.get("/v1/gates/g/checks").json()["items"][0]["id"] == checked.json()["id"]
    page = client.get("/ui").text
    assert "first" in page
    assert "second" not in page
    assert "second" in client.get("/ui", headers=NOW).text
    standby.resume()
    assert names("/v1/evaluations") == ["second", "first"]
    standby.stop()
    assert names("/v1/evaluations") == ["second", "first"]
    counted = client.get("/metrics").text
    assert "prevail_replica_lost_total 0.0" not in counted
    assert "prevail_replica_in_use 0.0" in counted
    assert 'prevail_list_reads_total{source="replica"}' in counted
    assert 'prevail_list_reads_total{source="primary"}' in counted
    standby.start()
