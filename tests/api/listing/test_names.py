"""One model, one dataset: what there is of it, under whatever name."""

from urllib.parse import quote

import httpx
import pytest

from app.domain.inventory import DatasetFacts, ModelFacts
from tests.api.answers import Json, check_json, check_problem, check_shape, create, evaluation
from tests.api.listing.conftest import DATASET, MODEL
from tests.bank import each


def newest(runs: list[Json]) -> Json:
    return {name: runs[-1][name] for name in ("id", "created_at")} | {"url": f"/v1/evaluations/{runs[-1]['id']}"}


def test_what_there_is_of_a_model(shelf: httpx.Client, shelved: list[Json]) -> None:
    reply = shelf.get(f"/v1/models/{quote(MODEL, safe='')}")
    check_json(reply)
    check_shape(reply, ModelFacts)
    mine = [run for run in shelved if run["model"]["name"] == MODEL]
    versions = {name: [run for run in mine if run["model"]["version"] == name] for name in ("1", "0")}
    assert reply.json() == {
        "name": MODEL,
        "n_evaluations": 12,
        "newest": newest(mine),
        "n_versions": 2,
        "versions": [
            {"version": name, "n_evaluations": len(versions[name]), "newest": newest(versions[name])}
            for name in ("1", "0")
        ],
    }


def test_what_there_is_of_a_dataset(shelf: httpx.Client, shelved: list[Json]) -> None:
    reply = shelf.get(f"/v1/datasets/{quote(DATASET, safe='')}")
    check_json(reply)
    check_shape(reply, DatasetFacts)
    mine = [run for run in shelved if run["dataset"]["name"] == DATASET]
    found = reply.json()
    assert (found["name"], found["n_evaluations"], found["newest"]) == (DATASET, 16, newest(mine))
    assert found["n_models"] == len({(run["model"]["name"], run["model"]["version"]) for run in mine})
    assert found["splits"] == ["test", "train"]
    assert found["n_versions"] == 2
    for part in found["versions"]:
        runs = [run for run in mine if run["dataset"]["split"] == part["split"]]
        assert part == {"version": "1", "split": part["split"], "n_evaluations": len(runs), "newest": newest(runs)}
    # Newest first.
    ids = [part["newest"]["id"] for part in found["versions"]]
    assert ids == sorted(ids, reverse=True)


def test_a_name_without_versions_and_splits(project: httpx.Client) -> None:
    run = create(project, evaluation(model="m", dataset="d"))
    for path in ("/v1/models/m", "/v1/datasets/d"):
        found = project.get(path).json()
        assert found["n_evaluations"] == found["n_versions"] == 1
        (part,) = found["versions"]
        assert part["version"] is None
        assert part["newest"]["id"] == run["id"]
    assert project.get("/v1/datasets/d").json()["splits"] == []


@each("name", ["a/b", "a b", "a//b/", "/a", "100%", "%2F", "a?b#c", "ü/門", "a+b", "a;b=c", '"', "..a", "-" * 256])
def test_any_name_is_an_address(project: httpx.Client, name: str) -> None:
    create(project, evaluation(model=name, dataset=name))
    create(project, evaluation(model=f"{name[:200]}x", dataset=f"{name[:200]}x"))
    for noun in ("models", "datasets"):
        address = f"/v1/{noun}/{quote(name, safe='')}"
        assert project.get(address).json()["name"] == name
        assert project.delete(f"{address}?dry_run=true").json() == {"dry_run": True, "n_evaluations": 1}
    assert project.delete(f"/v1/models/{quote(name, safe='')}").json() == {"dry_run": False, "n_evaluations": 1}
    check_problem(project.get(f"/v1/models/{quote(name, safe='')}"), 404, "not_found")


def test_a_slash_may_stay_as_it_is(shelf: httpx.Client, shelved: list[Json]) -> None:
    assert shelf.get(f"/v1/models/{quote(MODEL)}").json()["name"] == MODEL


def test_a_name_is_found_in_another_form_of_unicode(project: httpx.Client) -> None:
    create(project, evaluation(model="caf\u00e9"))
    assert project.get(f"/v1/models/{quote('cafe' + chr(0x301))}").json()["n_evaluations"] == 1


def test_a_version_stands_behind_the_last_colon_of_a_name(project: httpx.Client) -> None:
    body = evaluation(model="registry:5000/m")
    body["model"]["version"] = "2"
    made = create(project, body)
    found = project.get("/v1/evaluations", params={"model": "registry:5000/m:2"}).json()["items"]
    assert [one["id"] for one in found] == [made["id"]]


@pytest.mark.parametrize("noun", ["models", "datasets"])
def test_what_nobody_used_is_not_there(shelf: httpx.Client, shelved: list[Json], noun: str) -> None:
    for method in ("GET", "DELETE"):
        problem = check_problem(shelf.request(method, f"/v1/{noun}/nobody"), 404, "not_found")
        assert problem["detail"] == f"there is no {noun[:-1]} 'nobody'"
        check_problem(shelf.request(method, f"/v1/{noun}/{'x' * 257}"), 422, "invalid_path")
        check_problem(shelf.request(method, f"/v1/{noun}/%00"), 422, "invalid_path")
        check_problem(shelf.request(method, f"/v1/{noun}/nobody?dryrun=true"), 422, "invalid_query")
    check_problem(shelf.delete(f"/v1/{noun}/nobody?dry_run=perhaps"), 422, "invalid_query")
    assert len(shelf.get("/v1/evaluations").json()["items"]) == len(shelved)
