"""Slices of runs that are kept, of inputs that are not, and as texts and pages."""

import json
from typing import Any

import httpx
import numpy as np
import pytest

from app.api.answers import answer_model
from app.api.documents.slices import _signed
from app.services.slices.answers import Slices
from examples import slices as example
from tests.api.answers import Json, check_json, check_problem, create, evaluation
from tests.api.shown import SLICED
from tests.ui.test_pages import check_page

ASKED: Json = {"by": ["site"], "metrics": ["recall@D", "precision@D", "h_mean"], "minimum_samples": 5}
MAPS = ("metrics", "where", "prevalence", "largest", "smallest", "reference")


@pytest.fixture(scope="module")
def kept(client: httpx.Client) -> str:
    return str(create(client, evaluation(input=SLICED))["id"])


def sliced(client: httpx.Client, identifier: str, **asked: Any) -> Json:
    reply = client.post(f"/v1/evaluations/{identifier}/slices", json={**ASKED, **asked})
    assert reply.status_code == 200, reply.text
    check_json(reply, named=MAPS)
    answer_model(Slices).model_validate_json(reply.content)
    answer: Json = reply.json()
    return answer


def test_a_kept_run_has_the_slices_of_its_input(client: httpx.Client, kept: str) -> None:
    inline = client.post("/v1/slices", json={"input": SLICED, **ASKED})
    assert inline.status_code == 200, inline.text
    found = sliced(client, kept)
    assert found.pop("evaluation_id") == kept
    assert {**found, "evaluation_id": None} == inline.json()
    assert [one["where"] for one in found["slices"]] == [{"site": "A"}, {"site": "B"}]
    assert found["slices"][0]["metrics"]["recall@D"]["value"] == 1.0


def test_an_attribute_that_is_named_twice_counts_once(client: httpx.Client, kept: str) -> None:
    assert sliced(client, kept, by=["site", "site"]) == sliced(client, kept)
    path = f"/v1/evaluations/{kept}/slices"
    for wrong, pointer in (({"depth": 2}, "/depth"), ({"by": ["site", "site", "ward"]}, "/by/2")):
        reply = client.post(path, json={**ASKED, "by": ["site", "site"], **wrong})
        assert check_problem(reply, 422, "invalid_input")["errors"][0]["pointer"] == pointer
    pages = [client.get(f"/ui/evaluations/{kept}/slices", params={"by": by}) for by in (["site"], ["site", "site"])]
    assert pages[0].status_code == pages[1].status_code == 200
    assert pages[0].text.count("<tr") == pages[1].text.count("<tr")
    figure = client.get(f"{path}/plots/slices.json", params={"by": ["site", "site"]})
    assert check_problem(figure, 422, "no_figure")["detail"].startswith("expected slices of two attributes")


def test_a_reference_a_depth_and_a_search(client: httpx.Client, kept: str) -> None:
    against = sliced(client, kept, reference={"site": "A"})
    assert against["reference"] == {"site": "A"}
    assert against["slices"][1]["metrics"]["recall@D"]["reference"] == 1.0
    found = sliced(client, kept, by=[], search={"metric": "recall@D", "depth": 2})
    assert found["searched"] == {"slices": 2, "depth": 2}


def test_texts_and_a_page_say_the_same(client: httpx.Client, kept: str) -> None:
    path = f"/v1/evaluations/{kept}/slices"
    for media in ("text/plain", "text/markdown", "text/csv"):
        reply = client.post(path, json=ASKED, headers={"Accept": media})
        assert reply.status_code == 200, reply.text
        assert "site B" in reply.text
        assert "recall@D" in reply.text
    few = client.post(path, json=ASKED, params={"fields": "findings"})
    assert list(few.json()) == ["findings"]
    assert f"{kept}/slices" in client.get(f"/ui/evaluations/{kept}").text
    read = client.get(f"/ui/evaluations/{kept}/slices", params={"by": "site", "metric": "recall@D"})
    page = check_page(read)
    # A reader of the screen says the head of every column.
    assert '<th scope="col"></th>' not in read.text
    assert page.named("form")
    assert "of m on d" in " ".join(page.text.split())
    more = {name: column * 4 for name, column in SLICED.items() if isinstance(column, list) and name != "labels"}
    sites = {"site": SLICED["attributes"]["site"] * 4}
    large = create(client, evaluation(input={**SLICED, **more, "attributes": sites}, dataset="large"))["id"]
    linked = f"/ui/evaluations/{large}?slice=site%3D%22A%22"
    assert linked in client.get(f"/ui/evaluations/{large}/slices", params={"by": "site"}).text
    reply = client.get(f"/ui/evaluations/{kept}", params={"slice": 'site="A"'})
    check_page(reply)
    assert "10 of 20 samples" in reply.text
    assert f"/ui/evaluations/{kept}/figures?slice=site%3D%22A%22" in reply.text


def test_two_attributes_are_a_figure_of_what_is_lost(client: httpx.Client) -> None:
    # Of 10 members of D in each cell, which are enough for a colour, 1, 3, 9 and 2 are lost; one more is too small.
    cells = {("A", "f"): 1, ("A", "m"): 3, ("B", "f"): 9, ("B", "m"): 2}
    sizes = [*((where, 40, lost) for where, lost in cells.items()), (("C", "f"), 5, 0)]
    columns: dict[str, list[str]] = {"y_true": [], "y_pred": [], "site": [], "sex": []}
    for (site, sex), size, lost in sizes:
        cases = min(10, size)
        columns["y_true"] += ["D"] * cases + ["healthy"] * (size - cases)
        columns["y_pred"] += ["healthy"] * lost + ["D"] * (cases - lost) + ["healthy"] * (size - cases)
        columns["site"] += [site] * size
        columns["sex"] += [sex] * size
    attributes = {"site": columns.pop("site"), "sex": columns.pop("sex")}
    sent = {"kind": "predictions", "labels": ["healthy", "D"], "positive": "D", "attributes": attributes, **columns}
    kept = create(client, evaluation(input=sent, dataset="crossed"))["id"]
    path = f"/v1/evaluations/{kept}/slices/plots/slices"
    figure = client.get(f"{path}.json", params={"by": ["site", "sex"], "metric": "recall@D"}).raise_for_status().json()
    assert "The largest share is lost in site B, sex f: 9 of 10." in figure["description"]
    assert "1 slice of too few samples is empty." in figure["description"]
    (panel,) = figure["hconcat" if "hconcat" in figure else "vconcat"]
    drawn = {(row["first"], row["second"]): row["counted"] for row in panel["data"]["values"]}
    assert drawn == {where: f"{lost} of 10" for where, lost in cells.items()}
    page = client.get(f"/ui/evaluations/{kept}/slices", params={"by": ["site", "sex"], "depth": 2})
    check_page(page)
    assert "lost in site B, sex f: 9 of 10" in page.text
    # Other metrics than rates have no cases.
    refused = client.get(f"{path}.json", params={"by": ["site", "sex"], "metric": "h_mean"})
    assert refused.json()["code"] == "no_figure", refused.text
    assert client.get(f"{path}.json", params={"by": "site"}).json()["code"] == "no_figure"


def test_large_bodies_are_read_as_small_ones(client: httpx.Client) -> None:
    times = 2000
    large = {**SLICED, "y_true": SLICED["y_true"] * times, "y_pred": SLICED["y_pred"] * times}
    large["attributes"] = {"site": SLICED["attributes"]["site"] * times}
    body = json.dumps({"input": large, **ASKED}).encode()
    assert len(body) > 1 << 18
    reply = client.post("/v1/slices", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == 200, reply.text
    first = reply.json()["slices"][0]
    assert first["n_samples"] == 10 * times
    assert first["metrics"]["recall@D"]["value"] == 1.0


@pytest.mark.parametrize(
    ("asked", "pointer", "code"),
    [
        ({"by": ["sites"]}, "/by/0", "unknown_name"),
        ({"bins": {"site": 2}}, "/bins/site", "not_a_number"),
        ({"reference": {"site": "Z"}}, "/reference/site", "unknown_value"),
        ({"depth": 2}, "/depth", "out_of_range"),
        ({"by": []}, "", "wrong_value"),
        ({"search": {"metric": "h_mean"}}, "/search/metric", "not_a_mean"),
        ({"search": {"metric": "recal@D"}}, "/search/metric", "unknown_metric"),
        ({"bins": {"site": [2, 1]}}, "", "wrong_value"),
    ],
)
def test_what_makes_no_sense_is_refused(client: httpx.Client, kept: str, asked: Json, pointer: str, code: str) -> None:
    problem = client.post(f"/v1/evaluations/{kept}/slices", json={**ASKED, **asked})
    assert problem.status_code == 422, problem.text
    assert [(one["pointer"], one["code"]) for one in problem.json()["errors"]] == [(pointer, code)]


@pytest.mark.parametrize(
    ("asked", "places"),
    [
        ({"reference": "nobody"}, {"/reference"}),
        ({"reference": {"site": ["B"]}}, {"/reference", "/reference/site"}),
        ({"bins": {"site": "four"}}, {"/bins/site"}),
    ],
)
def test_what_may_have_several_forms_has_one_place(
    client: httpx.Client, kept: str, asked: Json, places: set[str]
) -> None:
    problem = client.post(f"/v1/evaluations/{kept}/slices", json={**ASKED, **asked})
    assert {one["pointer"] for one in problem.json()["errors"]} == places


def test_runs_without_attributes_have_no_slices(client: httpx.Client) -> None:
    plain = {name: value for name, value in SLICED.items() if name != "attributes"}
    identifier = create(client, evaluation(input=plain))["id"]
    refused = client.post(f"/v1/evaluations/{identifier}/slices", json=ASKED)
    assert refused.json()["code"] == "no_samples_kept"
    assert client.post("/v1/slices", json={"input": plain, **ASKED}).json()["errors"][0]["code"] == "no_attributes"


def test_the_example_finds_for_whom_the_model_is_worse(client: httpx.Client) -> None:
    reply = client.post("/v1/slices", json={"input": example.source(), **example.question()})
    assert reply.status_code == 200, reply.text
    worse = [one["evidence"]["where"] for one in reply.json()["findings"] if one["code"] == "slice_worse"]
    assert worse == [{"bmi": {"from": 25.0, "to": 30.0}}, {"bmi": {"from": None, "to": 25.0}}]


def test_slices_of_one_group_each_have_values_without_limits(client: httpx.Client) -> None:
    """As where patients of each site are one cluster: how sites differ is known of all of them alone."""
    random = np.random.default_rng(4)
    sites = np.repeat([*"ABC"], 40).tolist()
    truth = random.choice([*"ab"], 120)
    guess = np.where(random.random(120) < 0.8, truth, random.choice([*"ab"], 120))
    source = {
        "kind": "predictions",
        "y_true": truth.tolist(),
        "y_pred": guess.tolist(),
        "group_ids": sites,
        "attributes": {"site": sites, "odd": [place % 2 == 1 for place in range(120)]},
    }
    run = create(client, evaluation(dataset="sites", input=source))["id"]
    address = f"/v1/evaluations/{run}"
    found = client.post(f"{address}/slices", json={"by": ["site", "odd"]}).json()
    assert [one["where"] for one in found["slices"]] == [{"odd": False}, {"odd": True}]
    assert [(one["where"]["site"], one["n_samples"]) for one in found["left_out"]] == [("A", 40), ("B", 40), ("C", 40)]
    assert all("all in one group" in one["reason"] for one in found["left_out"])
    assert "slices_in_one_group" in [one["code"] for one in found["findings"]]
    search = {"search": {"metric": "accuracy", "depth": 1}}
    assert client.post(f"{address}/slices", json=search).status_code == 200
    asked = ['recall@b[site="A"]', "min(recall@b, by=site)"]
    values = client.get(address, params={"fields": "values", "metrics": asked}).json()["values"]
    hits = [guess[place] == "b" for place in range(40) if truth[place] == "b"]
    assert values[asked[0]]["value"] == pytest.approx(np.mean(hits))
    assert (values[asked[0]]["low"], values[asked[1]]["low"]) == (None, None)
    assert "one group" in values[asked[0]]["reason"]
    shares = {"prevalence": {"a": 0.5, "b": 0.5}, "metrics": ["accuracy"]}
    projected = client.post(f"{address}/projections", params={"slice": 'site="A"'}, json=shares).json()
    assert projected["metrics"]["accuracy"]["low"] is None
    assert any("one group" in note for note in projected["notes"])


def test_counts_of_an_excess_have_a_sign_unless_they_are_none() -> None:
    assert [_signed(one) for one in (1.5, 0.4, -0.4, -1.5)] == ["+2", "0", "0", "-2"]
