"""Many evaluations removed at once: counted first, traced, and nothing beside them."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from app.domain.inventory import Removal
from app.services import inventory
from tests.api.answers import Json, check_json, check_problem, check_shape, create, evaluation
from tests.api.generated.kept import PROBABILITIES
from tests.api.listing.conftest import DATASET, MODEL

FILTERS: list[dict[str, Any]] = [
    {"model": MODEL},
    {"model": MODEL, "model_version": "1"},
    {"dataset": DATASET, "split": "test"},
    {"tag": "even:True"},
    {"where": "h_mean>=0.5"},
    {"where": ["h_mean<0.5", "accuracy>0.3"], "model": MODEL},
    {"created_before": "2999-01-01"},
    {"model": "nobody"},
]


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several transactions for what tests remove."""
    monkeypatch.setattr(inventory, "_AT_ONCE", 3)


def ids(client: httpx.Client, **parameters: Any) -> set[str]:
    return {item["id"] for item in client.get("/v1/evaluations", params={"limit": 200, **parameters}).json()["items"]}


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_what_passes_is_removed_and_nothing_else(
    project: httpx.Client, kept: list[Json], filters: dict[str, Any]
) -> None:
    passing, everything = ids(project, **filters), ids(project)
    counted = project.delete("/v1/evaluations", params={**filters, "dry_run": True})
    check_json(counted)
    check_shape(counted, Removal)
    assert counted.json() == {"dry_run": True, "n_evaluations": len(passing)}
    assert ids(project) == everything
    removed = project.delete("/v1/evaluations", params=filters)
    assert removed.json() == {"dry_run": False, "n_evaluations": len(passing)}
    assert ids(project) == everything - passing
    assert project.delete("/v1/evaluations", params=filters).json()["n_evaluations"] == 0


def test_without_a_filter_nothing_is_removed(project: httpx.Client, kept: list[Json]) -> None:
    for dry_run in ({}, {"dry_run": True}, {"dry_run": False}):
        problem = check_problem(project.delete("/v1/evaluations", params=dry_run), 422, "invalid_query")
        assert problem["errors"][0]["code"] == "no_filter"
    others: list[dict[str, Any]] = [
        {"limit": 1},
        {"sort": "-h_mean"},
        {"modle": MODEL},
        {"model": MODEL, "select": "mcc"},
    ]
    for parameters in others:
        problem = check_problem(project.delete("/v1/evaluations", params=parameters), 422, "invalid_query")
        assert problem["errors"][0]["code"] == "unknown_parameter"
    check_problem(project.delete("/v1/evaluations", params={"where": "h_men>1"}), 422, "invalid_query")
    assert len(ids(project)) == len(kept)


def test_what_is_removed_is_what_somebody_has_seen(project: httpx.Client, kept: list[Json]) -> None:
    address = f"/v1/evaluations?model={MODEL}"
    seen = {"If-Match": project.get(address).headers["etag"]}
    added = create(project, evaluation(model=MODEL))["id"]
    for asked in (address, f"{address}&dry_run=true"):
        check_problem(project.delete(asked, headers=seen), 412, "precondition_failed")
    project.delete(f"/v1/evaluations/{added}")
    passing = len(ids(project, model=MODEL))
    for asked in (f"{address}&dry_run=true", address):
        assert project.delete(asked, headers=seen).json()["n_evaluations"] == passing


@pytest.mark.parametrize(("noun", "name"), [("models", MODEL), ("datasets", DATASET)])
def test_a_name_goes_with_its_evaluations(project: httpx.Client, kept: list[Json], noun: str, name: str) -> None:
    address = f"/v1/{noun}/{quote(name, safe='')}"
    mine = ids(project, **{noun[:-1]: name})
    assert project.delete(address, params={"dry_run": True}).json() == {"dry_run": True, "n_evaluations": len(mine)}
    assert project.delete(address).json() == {"dry_run": False, "n_evaluations": len(mine)}
    assert len(ids(project)) == len(kept) - len(mine)
    assert name not in {one["name"] for one in project.get(f"/v1/{noun}").json()["items"]}
    check_problem(project.delete(address), 404, "not_found")


def test_who_removed_what_is_kept(project: httpx.Client, kept: list[Json]) -> None:
    gone = ids(project, model=MODEL)
    project.delete("/v1/evaluations", params={"model": MODEL}, headers={"X-Request-ID": "removal-1"})
    entries = project.get("/v1/audit", params={"limit": 200}).json()["items"]
    removed = [entry for entry in entries if entry["action"] == "deleted"]
    assert sorted(entry["object"] for entry in removed) == sorted(gone)
    assert {(entry["kind"], entry["request_id"]) for entry in removed} == {("evaluation", "removal-1")}


def test_answers_about_what_was_removed_are_kept(project: httpx.Client, kept: list[Json]) -> None:
    runs = [run["id"] for run in kept[:2]]
    project.put("/v1/gates/g", json={"rules": [{"metric": "accuracy", "min": 0.5}]})
    comparison = project.post("/v1/comparisons", json={"evaluations": runs}).json()
    check = project.post("/v1/gates/g/checks", json={"evaluation": runs[0]}).json()
    assert project.delete("/v1/evaluations", params={"dataset": DATASET}).json()["n_evaluations"] == 16
    assert project.get(f"/v1/comparisons/{comparison['id']}").json() == comparison
    assert project.get(f"/v1/gates/g/checks/{check['id']}").json() == check


def test_samples_go_with_the_last_that_has_them(project: httpx.Client) -> None:
    """Two runs on one test set share its truth: removing one of them at once with others leaves it to the other."""
    runs = [create(project, evaluation(model=name, input=PROBABILITIES)) for name in ("a", "b", "a", "a")]
    before = project.get(f"/v1/evaluations/{runs[1]['id']}/curves/roc").json()
    assert project.delete("/v1/models/a").json()["n_evaluations"] == 3
    assert project.get(f"/v1/evaluations/{runs[1]['id']}").json() == runs[1]
    assert project.get(f"/v1/evaluations/{runs[1]['id']}/curves/roc").json() == before
    assert project.delete("/v1/models/b").json()["n_evaluations"] == 1
    assert ids(project) == set()


def test_other_projects_keep_theirs(project: httpx.Client, client: httpx.Client, kept: list[Json]) -> None:
    mine = create(client, evaluation(model=MODEL, dataset="removal elsewhere"))
    project.delete("/v1/evaluations", params={"created_before": "2999-01-01"})
    assert ids(project) == set()
    assert client.get(f"/v1/evaluations/{mine['id']}").status_code == 200
