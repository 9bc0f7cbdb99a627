"""The dashboard and the page for operators ask for nothing that the service does not tell."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.answers import create, evaluation
from tests.api.test_metrics import SCORES, parsed, wait_until

ROOT = Path(__file__).parents[2]
DASHBOARD: dict[str, Any] = json.loads((ROOT / "examples/grafana/prevail.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
_NAME = re.compile(r"\bprevail_[a-z_]+\b")
_GROUPED = re.compile(r"\b(?:by|without) \(([^)]*)\)")
_MATCHED = re.compile(r"[{,]\s*(\w+)\s*=~?\s*\"([^\"]*)\"")
_SUFFIXES = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


def documented() -> list[str]:
    page = (ROOT / "docs/reference/operations.md").read_text()
    return [block for block in re.findall(r"`([^`\n]+)`", page) if "prevail_" in block]


def wanted() -> list[str]:
    return [*EXPRESSIONS, *documented()]


@pytest.fixture(scope="module")
def exposition(client: httpx.Client) -> str:
    """With something in every series."""
    create(client, evaluation())
    client.get("/nowhere")
    client.post("/v1/metrics/compute", json={"input": SCORES}).raise_for_status()
    wait_until(lambda: 'prevail_processes{process="compute"}' in client.get("/metrics").text)
    return client.get("/metrics").text


def test_every_name_is_told(exposition: str) -> None:
    told = {
        name + suffix
        for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", exposition, re.MULTILINE)
        for suffix in _SUFFIXES[kind]
    }
    asked = {name for expression in wanted() for name in _NAME.findall(expression)}
    assert asked - told == set()
    assert len(asked) > 20


def test_every_label_is_told(exposition: str) -> None:
    told: dict[str, set[str]] = {}
    for _, labels in parsed(exposition):
        for label, value in labels:
            told.setdefault(label, set()).add(value)
    grouped = {name.strip() for one in wanted() for names in _GROUPED.findall(one) for name in names.split(",")}
    assert grouped - told.keys() == set()
    # Values of these are refusals, routes and the like, which are there once they have happened.
    fixed = {"state", "process", "where", "work"}
    for expression in wanted():
        for label, value in _MATCHED.findall(expression):
            assert label in told, expression
            assert label not in fixed or value in told[label], expression


def test_the_dashboard_is_whole() -> None:
    assert DASHBOARD["schemaVersion"] >= 39
    identifiers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(identifiers) == len(set(identifiers))
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]]
    assert len(places) == len(set(places))
    for expression in EXPRESSIONS:
        assert expression.count("(") == expression.count(")")
        # A counter alone says nothing.
        assert "_total" not in expression or re.search("rate|increase|database_lost_total", expression)
    for panel in PANELS:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${source}"}
