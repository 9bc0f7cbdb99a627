"""Pictures of figures: drawn from the specification, by a process that is there for nothing else."""

import json
import re
from xml.etree import ElementTree as ET

import httpx
import psutil
import pytest
from scipy.stats import norm

from app.services.decide.curves import CurveName
from app.services.processes import rendering
from app.services.processes.rendering import PictureFormat, Renderer
from tests.api.answers import Json, check_problem, create, evaluation, matrix_input
from tests.api.plots.world import HOSTILE, confused, keep_matrix
from tests.api.test_probabilities import make

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


@pytest.fixture(scope="module")
def two(client: httpx.Client) -> str:
    return str(create(client, evaluation(input=make(n=300, classes=2)))["id"])


def svg_of(client: httpx.Client, address: str) -> str:
    reply = client.get(address)
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"].startswith("image/svg+xml")
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    return reply.text


def lines_of(svg: str) -> list[list[tuple[float, float]]]:
    """The points of every line of a picture, in pixels of the drawing area."""
    root = ET.fromstring(svg)
    found = []
    for group in root.iter():
        if "mark-line" in group.get("class", ""):
            for path in group.iter("{http://www.w3.org/2000/svg}path"):
                numbers = [float(one) for one in _NUMBER.findall(path.get("d", ""))]
                found.append(list(zip(numbers[::2], numbers[1::2], strict=True)))
    return found


def placed(values: list[float | None], encoding: Json) -> list[float]:
    """Where values lie on their axis, from 0 to 1; where there is no value nothing is drawn."""
    low, high = encoding["scale"]["domain"]
    return [(one - low) / (high - low) for one in values if one is not None]


@pytest.mark.parametrize("name", CurveName)
def test_coordinates_are_those_of_the_curve(client: httpx.Client, two: str, name: CurveName) -> None:
    """Read back from the picture, as somebody would with a ruler."""
    width, height = 400, 300
    address = f"/v1/evaluations/{two}/plots/{name}"
    svg = svg_of(client, f"{address}.svg?width={width}&height={height}")
    axes = client.get(f"{address}.json").json()["encoding"]
    answer = client.get(f"/v1/evaluations/{two}/curves/{name}").json()
    points = [one for one in zip(answer["x"], answer["y"], strict=True) if one[1] is not None]
    if name is CurveName.DET:
        # On normal deviates, which rates of 0 and 1 have none of.
        points = [(norm.ppf(x), norm.ppf(y)) for x, y in points if 0 < x < 1 and 0 < y < 1]
    expected = [placed(list(side), axes[axis]) for axis, side in zip("xy", zip(*points, strict=True), strict=True)]
    # The lines behind it may have as many points.
    drawn = [line for line in lines_of(svg) if len(line) == len(points)][-1]
    assert [x / width for x, _ in drawn] == pytest.approx(expected[0], abs=2e-5)
    assert [1 - y / height for _, y in drawn] == pytest.approx(expected[1], abs=2e-5)


def test_a_picture_is_the_same_whatever_was_drawn_before(client: httpx.Client, two: str) -> None:
    addresses = [f"/v1/evaluations/{two}/plots/{name}.svg" for name in (CurveName.ROC, CurveName.PR, CurveName.ROC)]
    first, other, again = (svg_of(client, address) for address in addresses)
    assert first == again
    for svg in (first, other):
        assert {*re.findall(r"url\(#([^)]+)\)", svg)} == {*re.findall(r'<clipPath id="([^"]+)"', svg)} != set()
    tag = client.get(addresses[0]).headers["etag"]
    assert client.get(addresses[0], headers={"If-None-Match": tag}).status_code == 304


def test_classes_may_have_names_of_javascript(client: httpx.Client) -> None:
    body = evaluation(input=matrix_input([[5, 2], [3, 4]], labels=["constructor", "valueOf"]))
    run = create(client, body)["id"]
    for name in ("confusion", "per_class"):
        assert "constructor" in svg_of(client, f"/v1/evaluations/{run}/plots/{name}.svg")


def test_png(client: httpx.Client, two: str) -> None:
    reply = client.get(f"/v1/evaluations/{two}/plots/confusion.png?theme=dark")
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "image/png"
    assert reply.content.startswith(b"\x89PNG")


@pytest.mark.parametrize("classes", [2, 35, 200])
def test_a_matrix_of_any_size_is_drawn(client: httpx.Client, classes: int) -> None:
    svg = svg_of(client, f"/v1/evaluations/{keep_matrix(client, classes)}/plots/confusion.svg")
    assert svg.count("<path") > min(classes, 60)


def test_pictures_of_hostile_names_do_nothing(client: httpx.Client) -> None:
    body = evaluation(model=HOSTILE[0], input=matrix_input(confused(4), labels=HOSTILE))
    svg = svg_of(client, f"/v1/evaluations/{create(client, body)['id']}/plots/confusion.svg")
    root = ET.fromstring(svg)
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert not names & {"script", "foreignObject", "image", "a", "style", "use"}
    assert not [one for element in root.iter() for one in element.attrib if one.lower().startswith("on")]
    assert any(HOSTILE[0] in (element.text or "") for element in root.iter())


@pytest.mark.parametrize("text", ["constructor", "toString", "valueOf", "__proto__"])
def test_texts_that_every_object_of_javascript_has_are_drawn(text: str) -> None:
    shares = {"color": {"field": "of", "scale": {"domain": [text]}, "type": "nominal"}}
    figure = {"title": {"text": text}, "data": {"values": [{"of": text}]}, "mark": "point", "encoding": shares}
    svg = rendering.drawn(json.dumps(figure).encode(), PictureFormat.SVG).decode()
    assert svg.count(f">{text}<") == 2


def test_without_the_extra_there_are_specifications_only(
    client: httpx.Client, two: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "find_spec", lambda _: None)
    assert client.get(f"/v1/evaluations/{two}/plots/roc.json").status_code == 200
    for form in PictureFormat:
        problem = check_problem(client.get(f"/v1/evaluations/{two}/plots/roc.{form}"), 501, "not_installed")
        assert "`figures`" in problem["detail"]


def test_no_process_before_the_first_picture() -> None:
    before = len(psutil.Process().children(recursive=True))
    renderer = Renderer(20.0, wait_seconds=5.0)
    assert len(psutil.Process().children(recursive=True)) == before
    renderer.close()
