"""Figures that can be read: names that can be told apart, words that say no more than the numbers, at any size."""

from typing import Any

import httpx
import numpy as np
import pytest

import app.api.plots.catalogue  # noqa: F401 - it fills PLOTS
from app.api.plots.catalogue import names_of
from app.api.plots.histories import _axis
from app.api.plots.look import Look, Theme
from app.api.plots.marks import lines_by_run
from app.api.plots.matrices import in_percent
from app.api.plots.registry import PLOTS, FigureData, Subject
from tests.api.answers import Json, create, evaluation, matrix_input
from tests.api.plots.world import check_specification, keep_matrix, layer, values_of
from tests.api.test_probabilities import make


@pytest.fixture(scope="module")
def many(client: httpx.Client) -> str:
    """Forty classes with few samples each."""
    return str(create(client, evaluation(model="many", input=make(n=600, classes=40)))["id"])


def read(client: httpx.Client, identifier: str, name: str, **parameters: Any) -> Json:
    return check_specification(client.get(f"/v1/evaluations/{identifier}/plots/{name}.json", params=parameters))


def subtitle(figure: Json) -> str:
    return " ".join(figure["title"]["subtitle"])


def keep_two(client: httpx.Client) -> tuple[str, str]:
    """Two runs of which each finds another class least."""
    labels = ["a", "b", "c"]
    first = matrix_input([[9, 1, 0], [2, 8, 0], [0, 3, 7]], labels=labels)
    second = matrix_input([[1, 9, 0], [0, 9, 1], [0, 2, 8]], labels=labels)
    made = [create(client, evaluation(model=model, input=one)) for model, one in (("p", first), ("q", second))]
    return made[0]["id"], made[1]["id"]


def test_all_runs_of_a_figure_show_one_class(client: httpx.Client) -> None:
    """That of the first run, whichever the others find least."""
    first, second = keep_two(client)
    planes = read(client, first, "isocurves", **{"with": second})
    assert [row["y"] for row in layer(planes, "runs")["data"]["values"]] == [0.7, 0.8]
    for panel in read(client, first, "surfaces", **{"with": second})["hconcat"]:
        assert [row["y"] for row in layer(panel, "runs")["data"]["values"]] == [0.7, 0.8]
    sweep = read(client, first, "recall_sweep", **{"with": second})
    rows = layer(sweep["hconcat"][1], "curves")["data"]["values"]
    # Were the recall of c 0, the others of the second run are 0.1 and 0.9.
    assert next(row["y"] for row in rows if row["line"] == "q" and row["x"] == 0.0) == pytest.approx(1 / 3)
    assert "means: of p all other recalls as they are; dashed: the recall of p, 0.700" in subtitle(sweep)


def looks(encoding: Json) -> list[tuple[Any, Any]]:
    """Colour and dashes of each name."""
    colours = encoding["color"]["scale"]["range"]
    dashes = encoding.get("strokeDash", {"scale": {"range": [None] * len(colours)}})["scale"]["range"]
    return list(zip(colours, map(str, dashes), strict=True))


@pytest.mark.parametrize("theme", Theme)
def test_no_two_lines_look_the_same(client: httpx.Client, theme: Theme) -> None:
    encoding = lines_by_run([f"run {place}" for place in range(11)], Look(theme))
    assert len(set(looks(encoding))) == 11
    first, second = keep_two(client)
    others = ",".join([second, *keep_two(client), second])
    figure = read(client, first, "recall_sweep", theme=theme.value, **{"with": others})
    pairs = looks(layer(figure["hconcat"][1], "curves")["encoding"])
    assert len(pairs) == len(set(pairs)) == 6
    surfaces = read(client, first, "surfaces", theme=theme.value, **{"with": others})["hconcat"][0]
    shapes = layer(surfaces, "runs")["encoding"]["shape"]["scale"]["range"]
    assert len(shapes) == len(set(shapes)) == 5


def test_the_share_of_a_rare_class_is_not_rounded_to_none(client: httpx.Client) -> None:
    matrix = np.diag([1000, 995, 5])
    matrix[2] = [2, 0, 3]
    made = create(client, evaluation(input=matrix_input(matrix.tolist())))["id"]
    figure = read(client, made, "prevalence")
    assert "Metrics at shares of class 2 from 0.25 % to 99 %." in figure["description"]
    assert " 0 %" not in figure["description"]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        # Of more than two classes no share of one makes all of them equal. Then close together, and far apart.
        ([900, 900, 40, 40, 40, 40, 40], {("this data", "left")}),
        ([40, 60], {("this data", "right"), ("equal prevalence", "left")}),
        ([10, 90], {("this data", "left"), ("equal prevalence", "left")}),
    ],
)
def test_names_of_marked_shares_are_not_crossed(client: httpx.Client, sizes: list[int], expected: Any) -> None:
    matrix = np.diag(sizes) + 1
    made = create(client, evaluation(input=matrix_input(matrix.tolist())))["id"]
    label = "0" if len(sizes) == 2 else "6"
    figure = read(client, made, "prevalence", **{"class": label})
    found = {
        (one["data"]["values"][0]["said"], one["mark"]["align"])
        for one in figure["layer"]
        if one["mark"].get("type") == "text"
    }
    assert found == expected


def test_high_lifts_have_an_axis_of_equal_factors(client: httpx.Client, many: str) -> None:
    figure = read(client, many, "lift")
    axis = figure["encoding"]["y"]
    assert axis["scale"]["type"] == "symlog"
    assert axis["axis"]["values"] == [0, 1, 3, 10, 30, 100]
    assert "upright: log(1 + lift)" in subtitle(figure)
    two = create(client, evaluation(input=make(n=100, classes=2)))["id"]
    assert "type" not in read(client, two, "lift")["encoding"]["y"]["scale"]


def test_decision_curves_end_where_the_thresholds_do(client: httpx.Client, many: str) -> None:
    figure = read(client, many, "decision")
    ends = [row["x"] for one in ("curves", "weakest") for row in layer(figure, one)["data"]["values"]]
    low, high = figure["encoding"]["x"]["scale"]["domain"]
    assert low == 0.0
    assert high == pytest.approx(min(1.05 * max(ends), 1.0))


def test_decisions_at_the_foot_are_named_above(client: httpx.Client) -> None:
    source = {
        "kind": "probabilities",
        "y_true": [0, 1] * 15,
        "probabilities": [[0.9, 0.1]] * 29 + [[0.4, 0.6]],
    }
    low = create(client, evaluation(input=source))["id"]
    high = create(client, evaluation(model="high", input=make(n=60, classes=2)))["id"]
    figure = read(client, low, "roc", **{"with": high})
    texts = [one["mark"] for one in figure["layer"] if one["mark"]["type"] == "text"]
    # Behind the text stands the same in the colour of the paper, so that it is read on top of lines.
    assert [mark["dy"] for mark in texts] == [-10, -10]
    assert texts[0]["stroke"] == figure["config"]["background"]
    # Each point has the colour of its line.
    decided, curves = (layer(figure, one) for one in ("decided", "curves"))
    assert decided["encoding"]["color"]["scale"] == curves["encoding"]["color"]["scale"]
    names = {row["run"] for row in decided["data"]["values"]}
    assert names == set(decided["encoding"]["color"]["scale"]["domain"])
    assert [mark["dy"] for mark in (one["mark"] for one in read(client, high, "roc")["layer"]) if "dy" in mark] == [
        10,
        10,
    ]


def test_the_decision_is_named_where_the_curve_is_not(client: httpx.Client) -> None:
    """Precision falls to the right of the decision, so that its name is at the left."""
    high = create(client, evaluation(model="aside", input=make(n=60, classes=2)))["id"]
    sides = {
        name: {one["mark"]["align"] for one in read(client, high, name)["layer"] if "dy" in one["mark"]}
        for name in ("roc", "pr")
    }
    assert sides == {"roc": {"left"}, "pr": {"right"}}


def test_pages_break_lines_themselves(client: httpx.Client) -> None:
    made = create(client, evaluation(model="a name of many words " * 6, input=make(n=60, classes=2)))["id"]
    drawn = read(client, made, "roc")
    whole, broken = drawn["usermeta"]["subtitle"], drawn["title"]["subtitle"]
    assert " ".join(whole).split() == " ".join(broken).split()
    assert len(whole) < len(broken)


def test_names_in_words_are_as_they_were_sent(client: httpx.Client) -> None:
    made = create(client, evaluation(model="iPad-model", input=make(n=60, classes=2)))["id"]
    assert " iPad-model" in read(client, made, "roc")["description"]


def test_most_is_not_all(client: httpx.Client) -> None:
    rows = [[0.99, 0.01]] * 399 + [[0.2, 0.8]]
    source = {"kind": "probabilities", "y_true": [0] * 399 + [1], "probabilities": rows}
    made = create(client, evaluation(input=source))["id"]
    assert "where most samples are (more than 99 %)" in read(client, made, "calibration")["description"].lower()


def test_of_many_classes_the_weakest_is_seen_in_the_curve(client: httpx.Client, many: str) -> None:
    weakest = client.get(f"/v1/evaluations/{many}").json()["headline"]["weakest_class"]["label"]
    own = client.get(f"/v1/evaluations/{many}/curves/imcp", params={"class": weakest}).json()
    for name in ("imcp", "mcp"):
        figure = read(client, many, name, theme="dark")
        bars, lowest = (layer(figure, one) for one in ("bars", "lowest"))
        assert bars["encoding"]["color"]["scale"]["domain"] == [f"{weakest}, of the lowest recall", "other classes"]
        assert {row["class"] for row in lowest["data"]["values"]} == {weakest}
        assert lowest["mark"]["stroke"] == bars["encoding"]["color"]["scale"]["range"][0]
        assert "shaded, from below: certainly wrong, uncertain, certainly right" in subtitle(figure)
    assert [row["x"] for row in layer(read(client, many, "imcp"), "lowest")["data"]["values"]] == own["x"]


def test_zones_of_phi_are_named_and_their_bounds_are_ticks(client: httpx.Client, many: str) -> None:
    figure = read(client, many, "phi")
    imcp = client.get(f"/v1/evaluations/{many}").json()["probabilities"]["imcp"]
    bounds = [imcp["certainly_wrong"]["phi_below"], imcp["certainly_right"]["phi_above"]]
    axes = [one for one in values_of(figure, "axis") if "values" in one]
    assert all(axis["values"] == [0.0, *(round(one, 3) for one in bounds), 1.0] for axis in axes)
    assert "shaded, from the left: certainly wrong, uncertain, certainly right" in subtitle(figure)
    two = create(client, evaluation(input=make(n=60, classes=2)))["id"]
    assert "shaded, from the left: certainly wrong, certainly right" in subtitle(read(client, two, "phi"))


def test_mistakes_are_called_by_what_orders_them(client: httpx.Client) -> None:
    made = create(client, evaluation(input=matrix_input([[90, 10], [1, 1]])))["id"]
    figure = read(client, made, "confusions")
    assert figure["title"]["text"] == "Mistakes that take the largest shares of their class"
    # One of two comes before ten of a hundred.
    assert [row["count"] for row in figure["data"]["values"]] == [1, 10]


def test_short_names_of_clusters_lie(client: httpx.Client) -> None:
    for clusters, angle in ((["one", "two"], 0), (["a cluster with a name", "another"], -90)):
        source = {"kind": "clustering", "contingency": [[5, 1], [1, 6]], "clusters": clusters}
        figure = read(client, create(client, evaluation(input=source))["id"], "contingency")
        assert figure["encoding"]["x"]["axis"]["labelAngle"] == angle
        # Its title ends before the names of the clusters begin.
        assert figure["encoding"]["y"]["axis"]["titleAlign"] == "right"


def test_a_pair_is_named_once_and_what_has_no_limits_has_no_brackets(client: httpx.Client) -> None:
    runs = [keep_matrix(client, 4, model=model) for model in ("left-model", "right-model")]
    made = client.post("/v1/comparisons", json={"evaluations": runs, "metrics": ["accuracy", "h_mean", "mcc"]}).json()
    for metric in made["metrics"].values():
        metric["differences"][0].update(low=None, high=None)
    figure = PLOTS[Subject.COMPARISON, "differences"].make(FigureData(answer=made))
    assert figure.text.count("left-model") == 1
    assert "Accuracy cannot tell, 0.000; Harmonic mean of the recalls" in figure.text
    said = [row["said"] for rows in values_of(figure.body, "values") for row in rows if "said" in row]
    assert said
    assert not any("(" in one for one in said)


def test_of_many_models_not_all_are_read_out() -> None:
    count = 20
    answer = {
        "models": [{"name": f"model-{place}", "version": None} for place in range(count)],
        "datasets": ["d"] * 6,
        "metric": "accuracy",
        "average_ranks": [float(place + 1) for place in range(count)],
        "nemenyi": {"critical_difference": 12.1, "cliques": [list(range(15)), list(range(5, 20))]},
    }
    assert "critical_difference" in names_of(Subject.COMPARISON)
    figure = PLOTS[Subject.COMPARISON, "critical_difference"].make(FigureData(answer=answer))
    assert "model-0, model-1, model-2 and 12 more." in figure.text
    assert figure.text.count("model-") == 2 + 2 * 3


def test_shares_in_cells_are_rounded_as_they_are_in_sentences() -> None:
    """Halves go away from zero, what is not all is no hundred, and below one in a hundred there is nothing."""
    shares = (0.125, 0.145, 0.01, 0.0099, 0.0, 0.994, 0.996, 1.0)
    assert [in_percent(one) for one in shares] == ["13", "15", "1", "", "", "99", "99", "100"]


@pytest.mark.parametrize(
    ("count", "ticks"), [(1, [1]), (6, [1, 2, 3, 4, 5, 6]), (8, [1, 3, 5, 7]), (13, [1, 4, 7, 10, 13])]
)
def test_evaluations_of_one_day_are_numbered_evenly(count: int, ticks: list[int]) -> None:
    items = [{"created_at": f"2026-11-01T00:00:{second:02}Z"} for second in range(count)]
    assert _axis(items, titled=True)["axis"]["values"] == ticks
