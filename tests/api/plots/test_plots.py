"""Figures as data: specifications that the published schema takes, made of what the API answers."""

from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import pytest

from app.api.plots.catalogue import names_of
from app.api.plots.causes import falls_of_slices
from app.api.plots.differences import _pairs
from app.api.plots.matrices import beside_each_other
from app.api.plots.registry import PLOTS, Needs, Subject
from app.api.plots.slices import _loses, _row
from app.domain.catalogue import titled
from app.domain.wording import number
from tests.api.answers import Json, check_problem, create, evaluation, matrix_input
from tests.api.plots.world import HOSTILE, check_specification, confused, keep_matrix, layer, values_of
from tests.api.test_probabilities import make, make_scores
from tests.api.test_tournaments import judge, keep_table
from tests.bank import each
from tests.kernel.compare.test_across_datasets import SCORES

OF_REPORTS = [name for (of, name), plot in PLOTS.items() if plot.data in (Needs.REPORT, Needs.SWEEP) and name != "phi"]
OF_SAMPLES = [name for (of, name), plot in PLOTS.items() if plot.data is Needs.SAMPLES]
OF_KINDS = (Needs.UNITS, Needs.CLUSTERS)
OF_EVALUATIONS = [name for (of, name), plot in PLOTS.items() if of is Subject.EVALUATION and plot.data not in OF_KINDS]
SEVERAL = [name for (of, name), plot in PLOTS.items() if "with" in plot.parameters]


@pytest.fixture(scope="module")
def two(client: httpx.Client) -> str:
    return str(create(client, evaluation(input=make(n=300, classes=2)))["id"])


@pytest.fixture(scope="module")
def other(client: httpx.Client) -> str:
    return str(create(client, evaluation(model="other", input=make(n=200, classes=2, seed=4)))["id"])


@pytest.fixture(scope="module")
def three(client: httpx.Client) -> str:
    return str(create(client, evaluation(input=make(n=200)))["id"])


@pytest.fixture(scope="module")
def many(client: httpx.Client) -> str:
    return keep_matrix(client, 35)


def read(client: httpx.Client, identifier: str, name: str, **parameters: Any) -> Json:
    return check_specification(client.get(f"/v1/evaluations/{identifier}/plots/{name}.json", params=parameters))


@each("name", OF_EVALUATIONS)
def test_every_figure_of_an_evaluation(client: httpx.Client, two: str, three: str, name: str) -> None:
    for identifier, theme in ((two, "dark"), (three, "light")):
        specification = read(client, identifier, name, theme=theme)
        assert specification["config"]["background"] == {"light": "#ffffff", "dark": "#14171b"}[theme]


@pytest.mark.parametrize("name", SEVERAL)
def test_several_runs_in_one_figure(client: httpx.Client, two: str, other: str, name: str) -> None:
    text = str(read(client, two, name, **{"with": other}))
    assert "other" in text


def test_several_runs_are_drawn_for_the_class_that_the_first_one_recognises_least(
    client: httpx.Client, three: str
) -> None:
    second = create(client, evaluation(input=make(n=200, seed=3)))["id"]
    found = set()
    for run, other in ((three, second), (second, three)):
        weakest = client.get(f"/v1/evaluations/{run}").json()["headline"]["weakest_class"]["label"]
        found.add(weakest)
        assert f"class {weakest}; dashed" in " ".join(read(client, run, "roc", **{"with": other})["title"]["subtitle"])
    assert found != {"0"}, "the first class would do as well"


def test_the_corner_of_isocurves_holds_all_runs(client: httpx.Client) -> None:
    near, far = (
        create(client, evaluation(input=matrix_input([[100 - wrong, wrong], [wrong, 100 - wrong]])))["id"]
        for wrong in (2, 20)
    )
    for run, other in ((near, far), (far, near)):
        specification = read(client, run, "isocurves", **{"with": other})
        assert specification["encoding"]["x"]["scale"]["domain"] == [0.0, 0.5]
    assert read(client, near, "isocurves")["encoding"]["x"]["scale"]["domain"] == [0.0, 0.1]


@pytest.mark.parametrize("name", OF_REPORTS)
def test_every_figure_of_a_matrix(client: httpx.Client, many: str, name: str) -> None:
    read(client, many, name)


def test_of_two_hundred_classes_the_weakest_are_drawn(client: httpx.Client) -> None:
    matrix = confused(200)
    # One without samples has no recall.
    matrix[3] = [0] * 200
    body = evaluation(input=matrix_input(matrix, labels=[f"class {place}" for place in range(200)]))
    specification = read(client, create(client, body)["id"], "confusion")
    cells = specification["data"]["values"]
    known = [place for place in range(200) if place != 3]
    by_recall = sorted(known, key=lambda place: matrix[place][place] / sum(matrix[place]))[:30]
    names = list(dict.fromkeys(one["actual"] for one in cells))
    assert len(names) == 30
    assert [max(one["share"] for one in cells if one["right"] and one["actual"] == name) for name in names] == (
        pytest.approx([matrix[place][place] / sum(matrix[place]) for place in by_recall])
    )
    for name, place in zip(names, by_recall, strict=True):
        assert sum(one["count"] for one in cells if one["actual"] == name) == sum(matrix[place])
    assert specification["encoding"]["x"]["scale"]["domain"] == [*names, "any other class"]


def test_counts_and_shares_are_those_of_the_evaluation(client: httpx.Client) -> None:
    body = evaluation(input=matrix_input([[8, 2], [1, 3]], labels=["a", "b"]))
    specification = read(client, create(client, body)["id"], "confusion")
    cells = {(one["actual"], one["predicted"]): (one["count"], one["share"]) for one in specification["data"]["values"]}
    assert cells == {("a", "a"): (8, 0.8), ("a", "b"): (2, 0.2), ("b", "a"): (1, 0.25), ("b", "b"): (3, 0.75)}
    assert "11 of 14 are right" in specification["description"]
    assert "b taken for a, 1 of 4 (25 %)" in specification["description"]


@pytest.mark.parametrize("name", ["roc", "pr", "gain", "lift", "decision", "cost"])
def test_curves_have_the_points_of_the_curves(client: httpx.Client, two: str, name: str) -> None:
    answer = client.get(f"/v1/evaluations/{two}/curves/{name}").json()
    rows = layer(read(client, two, name), "curves")["data"]["values"]
    assert [(row["x"], row["y"], row["threshold"]) for row in rows] == list(
        zip(answer["x"], answer["y"], answer["thresholds"], strict=True)
    )


@pytest.mark.parametrize("name", ["roc", "pr", "det"])
def test_a_class_that_is_never_predicted_has_no_point_of_decisions(client: httpx.Client, name: str) -> None:
    source: Json = {"kind": "probabilities", "labels": ["a", "b"], "y_true": ["a", "a", "b", "b"]}
    source["probabilities"] = [[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.7, 0.3]]
    specification = read(client, create(client, evaluation(input=source))["id"], name)
    assert "decided" not in [one.get("name") for one in specification["layer"]]


def test_the_area_in_words_is_that_of_the_curve(client: httpx.Client, two: str) -> None:
    area = client.get(f"/v1/evaluations/{two}/curves/roc").json()["area"]
    assert f"area {area:.3f}" in read(client, two, "roc")["description"]


def test_classes_have_a_line_each_and_the_weakest_is_in_front(client: httpx.Client, three: str) -> None:
    specification = read(client, three, "roc")
    weakest = client.get(f"/v1/evaluations/{three}").json()["headline"]["weakest_class"]["label"]
    behind = {row["run"] for row in layer(specification, "curves")["data"]["values"]}
    assert {row["run"] for row in layer(specification, "weakest")["data"]["values"]} == {weakest}
    assert behind == {"0", "1", "2"} - {weakest}


def test_reliability_has_the_limits_of_the_curve(client: httpx.Client, two: str) -> None:
    answer = client.get(f"/v1/evaluations/{two}/curves/calibration", params={"band": "pointwise"}).json()
    rows = layer(read(client, two, "calibration"), "curves")["data"]["values"]
    assert [row["low"] for row in rows] == answer["low"]
    assert [row["high"] for row in rows] == answer["high"]
    assert [row["weight"] for row in rows] == answer["weights"]


def test_reliability_in_words_is_that_of_most_samples(client: httpx.Client, three: str) -> None:
    answer = client.get(f"/v1/evaluations/{three}/curves/calibration").json()
    place = answer["weights"].index(max(answer["weights"]))
    assert place > 0
    said = f"{number(answer['x'][place])} is stated and {number(answer['y'][place])} comes true"
    assert said in read(client, three, "calibration")["description"]


def test_isocurves_go_through_the_run(client: httpx.Client, two: str) -> None:
    specification = read(client, two, "isocurves")
    report = client.get(f"/v1/evaluations/{two}").json()["metrics"]["prevalence_insensitive"]
    (point,) = layer(specification, "runs")["data"]["values"]
    assert point["y"] == report["recall"]
    assert point["x"] == pytest.approx(1 - report["specificity"])
    for called, key in (("A", "balanced_accuracy"), ("G", "g_mean"), ("H", "h_mean")):
        curve = [row for row in layer(specification, "curves")["data"]["values"] if row["mean"].startswith(called)]
        near = min(curve, key=lambda row: abs(row["x"] - point["x"]))
        assert near["y"] == pytest.approx(point["y"], abs=0.02)
        assert f"{report[key]:.3f}" in specification["description"]


def test_the_sweep_is_that_of_the_projection(client: httpx.Client, two: str) -> None:
    sweep = {"class": "1", "from": 0.01, "to": 0.99, "steps": 25, "at": ["observed", "equal"]}
    body = {"sweep": sweep, "metrics": ["accuracy"]}
    answer = client.post(f"/v1/evaluations/{two}/projections", json=body).json()
    rows = [
        row for row in layer(read(client, two, "prevalence"), "curves")["data"]["values"] if row["run"] == "Accuracy"
    ]
    assert [row["x"] for row in rows] == answer["grid"]
    assert [row["y"] for row in rows] == answer["metrics"]["accuracy"]["value"]


def test_size_and_theme(client: httpx.Client, two: str) -> None:
    specification = read(client, two, "roc", width=200, height=150, theme="dark")
    assert (specification["width"], specification["height"]) == (200, 150)


def test_hostile_names_are_only_names(client: httpx.Client) -> None:
    body = evaluation(model=HOSTILE[0], input=matrix_input(confused(4), labels=HOSTILE))
    made = create(client, body)["id"]
    for name in OF_REPORTS:
        specification = read(client, made, name)
        assert "\x1b" not in str(specification)
        for expression in ("filter", "calculate", "labelExpr", "test", "expr", "signal"):
            for text in values_of(specification, expression):
                assert not any(one in str(text) for one in HOSTILE)


def test_what_cannot_be_drawn_is_refused(client: httpx.Client, two: str, many: str) -> None:
    def ask(identifier: str, name: str, **parameters: Any) -> httpx.Response:
        return client.get(f"/v1/evaluations/{identifier}/plots/{name}", params=parameters)

    for name in OF_SAMPLES:
        check_problem(ask(many, f"{name}.json"), 422, "needs_scores")
    check_problem(ask(many, "phi.json"), 422, "no_figure")
    check_problem(ask(str(uuid4()), "roc.json"), 404, "not_found")
    assert "isocurves" in check_problem(ask(two, "bow.json"), 422, "invalid_path")["errors"][0]["detail"]
    check_problem(ask(two, "roc.exe"), 422, "invalid_path")
    check_problem(ask(two, "roc.json", **{"class": "Z"}), 422, "unknown_class")
    check_problem(ask(two, "isocurves.json", **{"class": "Z"}), 422, "unknown_class")
    check_problem(ask(two, "imcp.json", **{"class": "Z"}), 422, "unknown_class")
    check_problem(ask(two, "phi.json", **{"class": "1"}), 422, "invalid_query")
    check_problem(ask(two, "confusion.json", **{"with": two}), 422, "invalid_query")
    check_problem(ask(two, "roc.json", **{"with": "x"}), 422, "invalid_query")
    check_problem(ask(two, "roc.json", width=10), 422, "invalid_query")
    right = evaluation(input=matrix_input([[5, 0], [0, 5]]))
    check_problem(ask(create(client, right)["id"], "confusions.json"), 422, "no_figure")


def test_scores_have_the_figures_of_an_order(client: httpx.Client) -> None:
    made = create(client, evaluation(input=make_scores()))["id"]
    for name in ("roc", "pr", "det", "gain", "lift"):
        read(client, made, name)
    check_problem(client.get(f"/v1/evaluations/{made}/plots/calibration.json"), 422, "undefined_curve")


def test_rankings_have_no_figures_of_classes(client: httpx.Client) -> None:
    source = {"kind": "ranking", "query_ids": ["q", "q"], "relevance": [1, 0], "scores": [2.0, 1.0]}
    made = create(client, evaluation(input=source))["id"]
    for name in ("confusion", "per_class", "isocurves", "prevalence", "phi"):
        check_problem(client.get(f"/v1/evaluations/{made}/plots/{name}.json"), 422, "no_figure")


# --- comparisons -----------------------------------------------------------------------------------------------------


def compare(client: httpx.Client, *runs: str) -> str:
    reply = client.post("/v1/comparisons", json={"evaluations": runs, "metrics": ["accuracy", "h_mean", "error_rate"]})
    assert reply.status_code == 201, reply.text
    return str(reply.json()["id"])


def test_differences_are_those_of_the_comparison(client: httpx.Client, two: str, other: str) -> None:
    made = compare(client, two, other)
    answer = client.get(f"/v1/comparisons/{made}").json()
    specification = check_specification(client.get(f"/v1/comparisons/{made}/plots/differences.json"))
    rows = {row["metric"]: row for rows in values_of(specification, "values") for row in rows if "difference" in row}
    for key, name in (("accuracy", "Accuracy"), ("h_mean", "Harmonic mean of the recalls")):
        (pair,) = answer["metrics"][key]["differences"]
        found = rows[name]
        assert (found["at"], found["from"], found["to"]) == (pair["difference"], pair["low"], pair["high"])
    (pair,) = answer["metrics"]["error_rate"]["differences"]
    turned = rows["Error rate (lower is better)"]
    assert (turned["at"], turned["from"], turned["to"]) == (-pair["difference"], -pair["high"], -pair["low"])


def test_of_false_alarms_the_hits_are_what_is_lost() -> None:
    """5 of 10 where 1 of 10 is usual: that many cases are found, or that many others are taken for some."""
    counts = {"hits": 5.0, "among": 10.0, "reference_hits": 1.0, "reference_among": 10.0}
    metrics = {"recall@D": {"counts": {**counts, "beyond": -4.0}}, "fpr@D": {"counts": {**counts, "beyond": 4.0}}}
    answer = {"slices": [{"metrics": metrics}]}
    assert (_loses(answer, "recall@D"), _loses(answer, "fpr@D")) == (1, -1)
    for among, shares in ((10.0, (0.7, 0.3)), (9.0, (None, None))):
        few = {"counts": {"hits": 3.0, "among": among}}
        here = {"where": {"site": "A"}, "metrics": {"recall@D": few, "fpr@D": few}}
        rows = [_row(here, answer, metric) for metric in ("recall@D", "fpr@D")]
        assert [row["counted"] for row in rows] == [f"{among - 3:g} of {among:g}", f"3 of {among:g}"]
        # Of fewer than ten cases a share has no colour.
        assert tuple(row["share"] for row in rows) == shares


def test_each_of_many_runs_is_held_against_the_best(client: httpx.Client, two: str, other: str) -> None:
    """Three runs have two panels of three pairs, with the differences that the answer has, turned where it has them
    the other way round.
    """
    third = create(client, evaluation(model="third", input=make(n=100, classes=2, seed=9)))["id"]
    made = compare(client, two, other, third)
    specification = check_specification(client.get(f"/v1/comparisons/{made}/plots/differences.json?theme=dark"))
    assert len(specification["facet"]["row"]["sort"]) == 2
    metric = client.get(f"/v1/comparisons/{made}").json()["metrics"]["accuracy"]
    rows = [row for rows in values_of(specification, "values") for row in rows if row.get("metric") == "Accuracy"]
    differences = {abs(one["difference"]) for one in metric["differences"]}
    assert {abs(row["difference"]) for row in rows} < differences
    assert len(rows) == 2
    check_problem(client.get(f"/v1/comparisons/{made}/plots/critical_difference.json"), 422, "no_figure")
    check_problem(client.get(f"/v1/comparisons/{made}/plots/roc.json"), 422, "invalid_path")
    check_problem(client.get(f"/v1/comparisons/{uuid4()}/plots/differences.json"), 404, "not_found")


def test_runs_are_held_against_the_baseline_before_the_best() -> None:
    answer = {"evaluations": [{"id": "a"}, {"id": "b"}, {"id": "c"}], "metrics": {"h_mean": {"ranks": [3, 1, 2]}}}
    assert _pairs(answer) == [("c", "b"), ("a", "b")]
    assert _pairs({**answer, "baseline_id": "a"}) == [("b", "a"), ("c", "a")]


def test_the_largest_gap_of_a_slice_is_explained_first() -> None:
    def one(site: str, difference: float, verdict: str) -> Json:
        causes = {"difference": difference, "items": [{"value": difference}]}
        return {"where": {"site": site}, "metrics": {"f1@D": {"causes": causes, "difference": {"verdict": verdict}}}}

    slices = [one("A", 0.1, "better"), one("B", -0.3, "worse"), one("C", -0.5, "undecided")]
    assert [fall.name for fall in falls_of_slices({"slices": slices})] == ["F1 of D, site B", "F1 of D, site A"]


def test_average_ranks_are_those_of_the_tournament(client: httpx.Client) -> None:
    models, datasets = keep_table(client, SCORES, uuid4().hex[:6])
    answer = judge(client, metric="accuracy", models=models, datasets=datasets)
    reply = client.get(f"/v1/comparisons/{answer['id']}/plots/critical_difference.json")
    specification = check_specification(reply)
    ranks = [row["rank"] for rows in values_of(specification, "values") for row in rows if "rank" in row]
    assert set(ranks) == set(answer["average_ranks"])
    assert f"{answer['nemenyi']['critical_difference']:.3f}" in specification["description"]
    check_problem(client.get(f"/v1/comparisons/{answer['id']}/plots/differences.json"), 422, "no_figure")


# --- the list, and the order of classes ------------------------------------------------------------------------------


def test_the_list_has_every_figure(client: httpx.Client) -> None:
    items = client.get("/v1/plots").json()["items"]
    assert [(one["of"], one["name"]) for one in items] == [(of.value, name) for of in Subject for name in names_of(of)]
    assert len(items) == len(PLOTS)
    assert all(one["shows"].endswith(".") and one["needs"] for one in items)


def test_classes_that_are_confused_stand_together() -> None:
    matrix = [[9, 0, 1, 0, 0], [0, 5, 0, 0, 5], [3, 0, 7, 0, 0], [0, 0, 0, 4, 0], [0, 6, 0, 0, 4]]
    order = beside_each_other(matrix)
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert abs(order.index(1) - order.index(4)) == 1
    assert abs(order.index(0) - order.index(2)) == 1
    assert beside_each_other([[1]]) == [0]
    assert beside_each_other([[0, 0], [0, 0]]) == [0, 1]


def test_many_differences_are_not_cut_at_the_end(client: httpx.Client) -> None:
    """Of 90 classes not all recalls are drawn, but what is of all classes is, and the figure says so."""
    rng = np.random.default_rng(4)
    runs = []
    for model in ("a", "b"):
        counts = rng.multinomial(30, np.full(90, 0.3 / 90) + 0.7 * np.eye(90), size=90)
        runs.append(create(client, evaluation(model=model, input=matrix_input(counts.tolist())))["id"])
    body = {"evaluations": runs, "metrics": ["recall@*", "h_mean", "gps(recall@*, precision@3)"]}
    made = client.post("/v1/comparisons", json=body).json()
    drawn = check_specification(client.get(f"/v1/comparisons/{made['id']}/plots/differences.json"))
    assert drawn["title"]["subtitle"][-1] == "80 of 92: of single classes the largest differences"
    shown = list(dict.fromkeys(one for one in values_of(drawn, "metric") if isinstance(one, str)))
    assert shown[-2:] == ["Harmonic mean of the recalls", "gps(recall@*, precision@3)"]
    sizes = {titled(key): abs(one["differences"][0]["difference"]) for key, one in made["metrics"].items()}
    left_out = [sizes[name] for name in sizes if name not in shown]
    assert len(left_out) == 12
    assert max(left_out) <= min(sizes[name] for name in shown if name.startswith("Recall of "))
