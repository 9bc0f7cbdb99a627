"""Figures of the MCP and IMCP curves: of all classes, and of one (Aguilar-Ruiz & Michalak 2024, fig. 6)."""

from math import sqrt
from typing import Any

import httpx
import pytest

from tests.api.answers import Json, create, evaluation
from tests.api.plots.world import check_specification, layer
from tests.api.test_probabilities import make

SOURCE = make(n=200)


@pytest.fixture(scope="module")
def three(client: httpx.Client) -> str:
    return str(create(client, evaluation(input=SOURCE))["id"])


def read(client: httpx.Client, identifier: str, name: str, **parameters: Any) -> Json:
    return check_specification(client.get(f"/v1/evaluations/{identifier}/plots/{name}.json", params=parameters))


def phi_by_class() -> dict[str, list[float]]:
    """Closeness of every sample that was sent, by its class: 1 - sqrt(1 - sqrt(p))."""
    found: dict[str, list[float]] = {"0": [], "1": [], "2": []}
    for code, row in zip(SOURCE["y_true"], SOURCE["probabilities"], strict=True):
        found[str(code)].append(1.0 - sqrt(1.0 - sqrt(row[code])))
    return found


def test_bars_have_the_class_of_each_sample(client: httpx.Client, three: str) -> None:
    answer = client.get(f"/v1/evaluations/{three}/curves/imcp").json()
    rows = layer(read(client, three, "imcp"), "bars")["data"]["values"]
    assert [row["class"] for row in rows] == [one for one in answer["classes"] if one is not None]
    assert sum(row["width"] for row in rows) == pytest.approx(1.0)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_one_class_has_its_samples_at_their_places_among_all(client: httpx.Client, three: str, theme: str) -> None:
    whole = layer(read(client, three, "imcp"), "bars")["data"]["values"]
    for label, values in phi_by_class().items():
        figure = read(client, three, "imcp", theme=theme, **{"class": label})
        bars = layer(figure, "bars")["data"]["values"]
        # The same bars as in the curve of all classes, and the closeness of what was sent.
        places = ("start", "end", "y")
        assert [[row[one] for one in places] for row in bars] == [
            [row[one] for one in places] for row in whole if row["class"] == label
        ]
        assert [row["y"] for row in bars] == pytest.approx(sorted(values), abs=1e-12)
        assert sum(row["width"] for row in bars) == pytest.approx(1 / 3)
        points = layer(figure, "samples")["data"]["values"]
        assert [(row["x"], row["y"]) for row in points] == [(row["x"], row["y"]) for row in bars]
        mean = sum(values) / len(values)
        assert f"of class {label}: mean phi {mean:.3f}, area {mean / 3:.3f} of " in figure["description"]
        below = sum(one < 1.0 - sqrt(1.0 - sqrt(1 / 3)) for one in values) / len(values)
        assert f"{100 * below:.1f} % of its room lies where the true class could not win" in figure["description"]


def test_the_curve_of_one_class_alone_takes_the_whole_room(client: httpx.Client, three: str) -> None:
    for label, values in phi_by_class().items():
        figure = read(client, three, "mcp", **{"class": label})
        answer = client.get(f"/v1/evaluations/{three}/curves/mcp", params={"class": label}).json()
        line = layer(figure, "curves")["data"]["values"]
        assert [(row["x"], row["y"]) for row in line] == list(zip(answer["x"], answer["y"], strict=True))
        bars = layer(figure, "bars")["data"]["values"]
        assert sum(row["width"] for row in bars) == pytest.approx(1.0)
        assert [row["y"] for row in bars] == pytest.approx(sorted(values), abs=1e-12)
        assert f"mean phi {sum(values) / len(values):.3f}." in figure["description"]


def test_many_samples_of_a_class_are_counted(client: httpx.Client) -> None:
    made = create(client, evaluation(input=make(n=2600, classes=2)))["id"]
    size = int(client.get(f"/v1/evaluations/{made}/curves/imcp", params={"class": "1"}).json()["n_points"])
    figure = read(client, made, "imcp", **{"class": "1"})
    assert f"its samples at their places among all, 500 of {size:,};" in " ".join(figure["title"]["subtitle"])
    # Shares of the room are those of all samples or are not said.
    assert "%" not in figure["description"]
