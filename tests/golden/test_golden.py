"""The recorded answers still stand, and comparing them sees what it should see."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Template, empty_database
from tests.golden.comparing import compare, differences, report, summary
from tests.golden.playing import play, read_answers, served, write_answers
from tests.golden.requests import GROUPS, SETTINGS

ROOT = Path(__file__).resolve().parents[2]


# Of services that are not as all others, and where the names of projects are in the answers.
ALONE = {*SETTINGS, "keys"}


@pytest.fixture(scope="module")
def usual_url(template_database: Template) -> Iterator[str]:
    """A service for all groups that it can serve: each in a project, where it finds nothing but what it keeps."""
    with empty_database(template_database) as database, served(database) as url:
        yield url


@pytest.fixture
def answers(group: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    if group not in ALONE:
        return play(request.getfixturevalue("usual_url"), GROUPS[group], group.replace("_", "-"))
    database = empty_database(request.getfixturevalue("template_database"))
    with database as own, served(own, **SETTINGS.get(group, {})) as url:
        return play(url, GROUPS[group])


@pytest.mark.parametrize("group", GROUPS)
def test_answers_are_those_that_were_recorded(group: str, answers: dict[str, Any]) -> None:
    found = compare(read_answers(group), answers)
    if found:
        many = f"{len(found)} of {len(GROUPS[group])} requests of {group} are answered differently"
        pytest.fail(f"{many}; see tests/golden/__init__.py\n{report(found)}\n\n{summary(found)}", pytrace=False)


def test_every_operation_is_asked() -> None:
    """Each as it succeeds, by the paths of the OpenAPI document."""
    asked = {
        (call.method, call.path.partition("?")[0])
        for calls, answers in ((calls, read_answers(group)) for group, calls in GROUPS.items())
        for call in calls
        if answers[call.name]["status"] < 400
    }
    for path, operations in json.loads((ROOT / "docs/openapi.json").read_text())["paths"].items():
        pattern = re.compile(re.sub(r"\\\{[a-z]+\\\}|\{[a-z]+\}", "[^/]+(/[^/]+){0,4}", path))
        for method in operations:
            assert any(pattern.fullmatch(address) for verb, address in asked if verb == method.upper()), (method, path)


def test_nothing_is_recorded_of_requests_that_are_not_sent() -> None:
    for group, calls in GROUPS.items():
        assert read_answers(group).keys() == {call.name for call in calls}


OLD: dict[str, Any] = {"value": 0.1, "n": 3, "text": "a", "flag": True, "list": [1, 2.5], "none": None}


@pytest.mark.parametrize(
    ("changed", "places"),
    [
        ({}, []),
        ({"value": 0.1 * (1 + 5e-10)}, []),
        ({"value": 0.1 * (1 + 5e-9)}, ["/value"]),
        ({"value": None}, ["/value"]),
        ({"n": 3.0}, []),
        ({"n": 4}, ["/n"]),
        ({"n": True}, ["/n"]),
        ({"n": "3"}, ["/n"]),
        ({"flag": 1}, ["/flag"]),
        ({"text": "a "}, ["/text"]),
        ({"none": 0}, ["/none"]),
        ({"more": None}, ["/more"]),
        ({"list": [1]}, ["/list/1"]),
        ({"list": [2.5]}, ["/list/0"]),
        ({"list": [1, 2.5, {}]}, ["/list/2"]),
        ({"list": {"0": 1}}, ["/list"]),
    ],
)
def test_what_is_equal(changed: dict[str, Any], places: list[str]) -> None:
    assert [one.pointer for one in differences(OLD, {**OLD, **changed})] == places
    assert [one.pointer for one in differences({**OLD, **changed}, OLD)] == places


def test_large_whole_numbers_are_compared_exactly() -> None:
    assert [one.pointer for one in differences({"seed": 2**62}, {"seed": 2**62 + 1})] == ["/seed"]
    assert not list(differences([1e-13, 0.0], [0.0, -1e-13]))


def test_what_is_put_into_a_list_moves_nothing_else() -> None:
    old, new = [{"a": 1}, {"b": 2}, {"c": 3}], [{"a": 1}, {"x": 0}, {"b": 2}, {"c": 4}, {"d": 5}]
    assert [str(one) for one in differences(old, new, ("list",))] == [
        "/list/1: (absent) -> {'x': 0}",
        "/list/2/c: 3 -> 4",
        "/list/4: (absent) -> {'d': 5}",
    ]


def test_differences_are_told_by_pattern() -> None:
    old = {"a": {"per_class": {"x": {"f1": 0.5}, "y": {"f1": 0.25}}, "lines": [{"recall@x": 1}, {"recall@y": 2}]}}
    new = {"a": {"per_class": {"x": {"f1": 0.6}, "y": {"f1": 0.5}}, "lines": [{"recall@x": 1}, {"recall@y": None}]}}
    found = compare(old, new)
    assert [one.pattern for one in found["a"]] == ["/lines/*/recall@*", "/per_class/*/f1", "/per_class/*/f1"]
    assert [one.size for one in found["a"]] == [math.inf, pytest.approx(1 / 6), pytest.approx(1 / 2)]
    assert "a: 3 differences" in report(found)
    assert "/per_class/x/f1: 0.5 -> 0.6  (2 of /per_class/*/f1; numbers apart by up to 5.0e-01)" in report(found)
    assert "/per_class/y/f1: 0.25 -> 0.5" in report(found, full=True)
    assert "2 in 1 request" in summary(found)
    assert [one.pointer for one in compare({"a": 1}, {"b": 1})["b"]] == [""]


def test_the_same_answers_are_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.golden.playing.ANSWERS", tmp_path)
    answers = {"a": {"status": 200, "headers": {}, "body": {"value": 0.1, "text": "ä"}}}
    write_answers("group", answers)
    (written,) = tmp_path.iterdir()
    first = written.read_bytes()
    assert read_answers("group") == answers
    write_answers("group", dict(reversed(answers.items())))
    assert written.read_bytes() == first
