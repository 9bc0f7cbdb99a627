"""Figures of rates, of scores and of verdicts: what is drawn is what the service answers elsewhere, or in print."""

from collections.abc import Callable
from math import sqrt
from uuid import uuid4

import httpx
import numpy as np
import pytest

from tests.api.answers import Json, check_problem, create, evaluation, matrix_input
from tests.api.plots.world import check_specification, layer
from tests.api.test_probabilities import make, make_scores

MEANS: list[Callable[[float, float], float]] = [
    lambda x, y: (x + y) / 2,
    lambda x, y: sqrt(x * y),
    lambda x, y: 2 * x * y / (x + y),
]
PAPER = [[800, 0, 0, 0], [0, 600, 0, 0], [0, 0, 500, 0], [40, 24, 20, 16]]


@pytest.fixture(scope="module")
def two(client: httpx.Client) -> str:
    return str(create(client, evaluation(input=make(n=300, classes=2)))["id"])


@pytest.fixture(scope="module")
def four(client: httpx.Client) -> str:
    return str(create(client, evaluation(input=matrix_input(PAPER, labels=["A", "B", "C", "D"])))["id"])


def read(client: httpx.Client, identifier: str, name: str, **parameters: str) -> Json:
    return check_specification(client.get(f"/v1/evaluations/{identifier}/plots/{name}.json", params=parameters))


def lines(panel: Json) -> dict[str, dict[float, float]]:
    """The lines of a panel, each with y by x."""
    found: dict[str, dict[float, float]] = {}
    for row in layer(panel, "curves")["data"]["values"]:
        found.setdefault(row["line"], {})[round(row["x"], 9)] = row["y"]
    return found


def test_a_weak_recall_pulls_h_down_and_hardly_moves_the_accuracy(client: httpx.Client, four: str) -> None:
    """Aguilar-Ruiz (2025), fig. 2: A = (r + 3) / 4, G = r^(1/4), H = 4r / (1 + 3r), accuracy 0.95 + 0.05 r."""
    means, mixes = map(lines, read(client, four, "recall_sweep")["hconcat"])
    a, g, h = (means[told] for told in ("A, arithmetic mean", "G, geometric mean", "H, harmonic mean"))
    assert len(h) == 101
    for r in h:
        assert a[r] == pytest.approx((r + 3) / 4, abs=1e-12)
        assert g[r] == pytest.approx(r**0.25, abs=1e-12)
        assert h[r] == pytest.approx(4 * r / (1 + 3 * r), abs=1e-12)
        assert mixes["accuracy, prevalence of this data"][r] == pytest.approx(0.95 + 0.05 * r, abs=1e-12)
        assert mixes["accuracy, equal prevalence"][r] == pytest.approx(a[r], abs=1e-12)
    assert mixes["H, harmonic mean"] == h


def test_several_runs_have_a_line_of_accuracy_each(client: httpx.Client, four: str) -> None:
    even = create(
        client, evaluation(model="even", input=matrix_input(np.diag([9, 9, 9, 9]).tolist(), labels=[*"ABCD"]))
    )
    specification = read(client, four, "recall_sweep", **{"with": even["id"], "class": "D"})
    mixes = lines(specification["hconcat"][1])
    assert len(mixes) == 3
    assert sorted(values[0.0] for values in mixes.values()) == pytest.approx([0.0, 0.75, 0.95])


def test_surfaces_are_the_means_and_have_the_run(client: httpx.Client, four: str) -> None:
    panels = read(client, four, "surfaces", **{"class": "D"})["hconcat"]
    for panel, mean in zip(panels, MEANS, strict=True):
        assert [(row["x"], row["y"]) for row in layer(panel, "runs")["data"]["values"]] == [(1.0, 0.16)]
        for level in (0.2, 0.5, 0.9):
            corner, *rows = layer(panel, f"from_{level:g}")["data"]["values"]
            assert corner == {"x": min(row["x"] for row in rows), "y": 1.0, "top": 1.0}
            edge = [row for row in rows if row["y"] > 0.0]
            assert len(edge) > 5
            for row in edge:
                assert mean(row["x"], row["y"]) == pytest.approx(level, abs=1e-12)


def test_of_several_classes_the_point_is_that_of_this_data(client: httpx.Client, four: str) -> None:
    """Specificity moves with the mix of the other classes: that at equal prevalence, 0.72 / 0.75, is another."""
    (point,) = layer(read(client, four, "isocurves", **{"class": "A"}), "runs")["data"]["values"]
    assert (point["x"], point["y"]) == (pytest.approx(40 / 1200), 1.0)


def test_the_spread_of_gps_is_largest_where_the_paper_says(client: httpx.Client, four: str) -> None:
    """Martín De Diego et al. (2022), eq. 11 and Property 4: 1 / (2 sqrt 2) at 1/p of 3 and 1."""
    specification = read(client, four, "gps_spread", **{"class": "D"})
    for told, values in lines(specification).items():
        y = float(told.removeprefix("1/p = "))
        for x, spread in values.items():
            assert spread == pytest.approx(2 * sqrt(2) * abs(x - y) / (x + y) ** 2, abs=1e-8)
        if y == 1.0:
            assert max(values, key=values.__getitem__) == 3.0
            assert values[3.0] == pytest.approx(1 / (2 * sqrt(2)), abs=1e-12)
    (point,) = layer(specification, "run")["data"]["values"]
    assert point == {"x": pytest.approx(1 / 0.16), "y": pytest.approx(2 * sqrt(2) * 5.25 / 7.25**2)}


def test_the_surface_of_gps_has_the_levels_of_the_paper(client: httpx.Client, four: str) -> None:
    """The same, fig. 1a: on the edges of every region the spread is its level, inside it is more."""
    specification = read(client, four, "gps_spread_surface", **{"class": "D"})

    def spread(x: float, y: float) -> float:
        return 2 * sqrt(2) * abs(x - y) / (x + y) ** 2

    levels = set()
    for along, across in ("xy", "yx"):
        for row in layer(specification, f"bands_{along}")["data"]["values"]:
            level, one, start, end = float(row["from"]), row[across], row[along], row["end"]
            levels.add(level)
            assert spread(start, one) == pytest.approx(level, abs=1e-12)
            assert spread(end, one) == pytest.approx(level, abs=1e-12)
            assert 1.0 <= one <= start <= end
            assert spread(3 * one, one) >= level - 1e-12
    assert levels == {0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35}
    assert layer(specification, "largest")["data"]["values"] == [{"x": 3.0, "y": 1.0}]
    (point,) = layer(specification, "run")["data"]["values"]
    assert point == {"x": pytest.approx(1 / 0.16), "y": 1.0}
    assert "0.354, at rates of 0.333 and 1" in specification["description"]


def test_rates_beyond_the_surface_are_said_to_be(client: httpx.Client) -> None:
    made = create(client, evaluation(input=matrix_input([[1, 999], [5, 995]])))["id"]
    for name in ("gps_spread", "gps_spread_surface"):
        specification = read(client, made, name, **{"class": "0"})
        assert layer(specification, "run")["data"]["values"] == []
        assert "recall and precision of class 0 lie outside" in " ".join(specification["title"]["subtitle"])


def test_scores_lie_where_they_were_sent(client: httpx.Client) -> None:
    source = {
        "kind": "scores",
        "y_true": ["n", "n", "n", "p", "p"],
        "scores": [-2.0, -1.0, 1.5, 0.5, 2.0],
        "threshold": 1.0,
        "positive": "p",
    }
    specification = read(client, create(client, evaluation(input=source))["id"], "scores")
    inside, outside = specification["vconcat"]
    for panel, name, expected in ((inside, "inside", [0.5, 2.0]), (outside, "outside", [-2.0, -1.0, 1.5])):
        rows = layer(panel, name)["data"]["values"]
        assert sum(row["share"] for row in rows) == pytest.approx(1.0)
        assert all(row["from"] <= value <= row["to"] for row, value in zip(rows, expected, strict=True))
        assert layer(panel, "cut")["data"]["values"] == [{"from": 1.0}]
    assert "cuts at 1.000: 50 % of the class and 33 % of the others" in specification["description"]
    other = read(client, create(client, evaluation(input=source))["id"], "scores", **{"class": "n"})
    assert layer(other["vconcat"][0], "cut")["data"]["values"] == [{"from": -1.0}]
    assert "67 % of the class and 50 % of the others" in other["description"]
    one = {**source, "y_true": ["n", "n", "n", "n", "p"]}
    said = read(client, create(client, evaluation(input=one))["id"], "scores")["description"]
    assert said.startswith("Histograms of the score of class p: 1 sample of the class and 4 others.")
    # A cut beyond all scores is seen too.
    far = read(client, create(client, evaluation(input={**source, "threshold": 7.0}))["id"], "scores")
    assert layer(far["vconcat"][0], "inside")["encoding"]["x"]["scale"]["domain"] == [-2.0, 7.0]


def test_probabilities_of_two_classes_are_cut_at_a_half_and_of_three_nowhere(client: httpx.Client, two: str) -> None:
    assert layer(read(client, two, "scores")["vconcat"][0], "cut")["data"]["values"] == [{"from": 0.5}]
    three = create(client, evaluation(input=make(n=60)))["id"]
    assert all(len(panel["layer"]) == 1 for panel in read(client, three, "scores", **{"class": "1"})["vconcat"])
    scored = create(client, evaluation(input=make_scores()))["id"]
    assert read(client, scored, "scores")["title"]["text"].startswith("Score of class")


def test_what_has_no_rates_has_no_such_figure(client: httpx.Client) -> None:
    missed = create(client, evaluation(input=matrix_input([[5, 0], [5, 0]])))["id"]
    reply = client.get(f"/v1/evaluations/{missed}/plots/gps_spread.json")
    assert "no recall or precision above 0" in check_problem(reply, 422, "no_figure")["detail"]
    absent = create(client, evaluation(input=matrix_input([[5, 0, 0], [0, 5, 0], [0, 0, 0]])))["id"]
    reply = client.get(f"/v1/evaluations/{absent}/plots/recall_sweep.json")
    assert "has no recall" in check_problem(reply, 422, "no_figure")["detail"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_verdict_has_each_rule_with_its_limit(client: httpx.Client, two: str, theme: str) -> None:
    baseline = create(client, evaluation(model="other", input=make(n=200, classes=2, seed=4)))["id"]
    gate, rules = (
        f"drawn-{uuid4().hex[:8]}",
        [
            {"metric": "h_mean", "min": 0.99},
            {"metric": "error_rate", "max": 0.9},
            {"metric": "accuracy", "not_worse_than": "baseline", "margin": 0.05},
        ],
    )
    assert client.put(f"/v1/gates/{gate}", json={"rules": rules, "minimum_samples": 10}).is_success
    check = client.post(f"/v1/gates/{gate}/checks", json={"evaluation": two, "baseline": baseline}).json()
    reply = client.get(f"/v1/gates/{gate}/checks/{check['id']}/plots/verdict.json", params={"theme": theme})
    specification = check_specification(reply)
    assert specification["title"]["text"] == f"Gate {gate}: {check['verdict']}"
    assert len(specification["vconcat"]) == 4
    for panel, result in zip(specification["vconcat"], check["results"], strict=True):
        assert layer(panel, "value")["data"]["values"] == [{"at": result["value"]}]
        assert panel["title"]["text"].endswith(f": {result['verdict']}")
        # What decided, which is wider where several values can fail by chance.
        ends = result["decided_on"] if "metric" in result["rule"] else result
        if ends["low"] is not None:
            assert layer(panel, "interval")["data"]["values"] == [{"at": ends["low"], "to": ends["high"]}]
    limits = [[row["at"] for row in layer(panel, "limits")["data"]["values"]] for panel in specification["vconcat"]]
    assert limits == [[0.99], [0.9], [-0.05], [10.0]]
    least, most = (layer(panel, "wrong")["data"]["values"] for panel in specification["vconcat"][:2])
    assert (least, most) == ([{"at": 0.0, "to": 0.99}], [{"at": 0.9, "to": 1.0}])
    check_problem(client.get(f"/v1/gates/{gate}/checks/{uuid4()}/plots/verdict.json"), 404, "not_found")
    check_problem(client.get(f"/v1/gates/{gate}/checks/{check['id']}/plots/roc.json"), 422, "invalid_path")
