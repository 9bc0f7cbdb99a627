"""Every kind of input, every design of its samples, every question: limits, or the reason that statistics gives.

The table in docs/reference/uncertainty.md is made here: `RECORD_CELLS=1 python -m pytest
tests/api/test_every_cell.py` writes it.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import httpx
import numpy as np
import pytest

from tests.api.answers import Json, evaluation
from tests.cells import CELLS, designed

pytestmark = pytest.mark.slow
SIZE = 160
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "uncertainty.md"
BEGIN, END = "<!-- cells: begin -->\n", "<!-- cells: end -->"
EVERY = [(kind, design) for kind, cell in CELLS.items() for design in cell.designs]
QUESTIONS = ("value", "other shares", "paired", "unpaired", "leaderboard", "gate", "gate, difference")
OF_CLASSES = ("predictions", "probabilities", "scores")
# Why a value has no limits, where it has none: nothing else may be said.
REASONS = ("noise biases the value to one side",)
Said = Iterator[tuple[str, str, object, object]]


def kept(client: httpx.Client, sources: Iterable[Json], dataset: str) -> list[str]:
    made = []
    for place, source in enumerate(sources):
        reply = client.post("/v1/evaluations", json=evaluation(model=f"m{place}", dataset=dataset, input=source))
        assert reply.status_code == 201, reply.text
        made.append(reply.json()["id"])
    return made


def answered(reply: httpx.Response, status: int = 200) -> Json:
    assert reply.status_code == status, reply.text
    found: Json = reply.json()
    return found


def of_values(client: httpx.Client, source: Json, metrics: list[str]) -> Said:
    report = answered(
        client.post("/v1/metrics/compute", json={"input": source, "options": {"metrics": metrics, "intervals": "all"}})
    )
    for metric in metrics:
        found = report["intervals"].get(metric, {})
        yield "value", metric, found.get("low"), found.get("reason")
    if source["kind"] in OF_CLASSES:
        labels = source.get("labels", ["0", "1"])
        body = {"input": source, "metrics": metrics, "prevalence": dict.fromkeys(labels, 1.0 / len(labels))}
        for metric, found in answered(client.post("/v1/projections", json=body))["metrics"].items():
            yield "other shares", metric, found.get("low"), found.get("reason")


def of_differences(client: httpx.Client, runs: list[str], metrics: list[str]) -> Said:
    for question, paired in (("paired", True), ("unpaired", False)):
        body = {"evaluations": runs, "metrics": metrics, "paired": paired, "draws": 400}
        for metric, found in answered(client.post("/v1/comparisons", json=body), 201)["metrics"].items():
            (pair,) = found["differences"]
            yield question, metric, pair["low"], pair.get("reason")
            if pair["low"] is not None:
                apart = pair["low"] > 0 or pair["high"] < 0
                assert apart == (pair["p_value"] < 0.05), f"{metric} {question}: {pair}"


def of_decisions(client: httpx.Client, runs: list[str], metrics: list[str], dataset: str) -> Said:
    for metric in metrics:
        board = answered(client.get("/v1/leaderboard", params={"dataset": dataset, "metric": metric}))
        yield "leaderboard", metric, board["items"][0]["low"], " ".join(board["notes"])
    rules = [
        rule
        for metric in metrics
        for rule in ({"metric": metric, "min": 0.01}, {"metric": metric, "better_than": "baseline"})
    ]
    answered(client.put(f"/v1/gates/{dataset}", json={"rules": rules}), 201)
    check = client.post(f"/v1/gates/{dataset}/checks", json={"evaluation": runs[0], "baseline": runs[1]})
    for place, found in enumerate(answered(check, 201)["results"]):
        yield ("gate, difference" if place % 2 else "gate"), metrics[place // 2], found["low"], found["message"]


@pytest.fixture(scope="module")
def table(client: httpx.Client) -> Mapping[tuple[str, str, str], list[str]]:
    """For kind, design and question the metrics without limits and why."""
    without: dict[tuple[str, str, str], list[str]] = {}
    for kind, design in EVERY:
        random, metrics, dataset = np.random.default_rng(5), list(CELLS[kind].metrics), f"{kind}-{design}"
        sources = designed(CELLS[kind].made(random, SIZE), design, random)
        runs = kept(client, sources, dataset)
        found: dict[str, list[str]] = defaultdict(list)
        for asked in (
            of_values(client, sources[0], metrics),
            of_differences(client, runs, metrics),
            of_decisions(client, runs, metrics, dataset),
        ):
            for question, metric, low, reason in asked:
                found[question] += [f"{metric}: {reason}"] if low is None else []
                without[kind, design, question] = found[question]
    return without


def test_what_has_no_limits_says_a_reason_of_statistics(table: Mapping[tuple[str, str, str], list[str]]) -> None:
    wrong = {
        cell: metric
        for cell, metrics in table.items()
        for metric in metrics
        if not any(reason in metric for reason in REASONS)
    }
    assert not wrong


def written(table: Mapping[tuple[str, str, str], list[str]]) -> str:
    lines = [f"| input | samples | {' | '.join(QUESTIONS)} |", "| --- " * (2 + len(QUESTIONS)) + "|"]
    designs: dict[str, list[str]] = defaultdict(list)
    for kind, design in EVERY:
        cells = []
        for question in QUESTIONS:
            without = table.get((kind, design, question))
            names = [metric.partition(":")[0] for metric in without or ()]
            cells.append(
                "" if without is None else "yes" if not names else f"not {', '.join(f'`{name}`' for name in names)}"
            )
        designs[f"| `{kind}` | {{}} | {' | '.join(cells)} |"].append(design)
    lines += [line.format(", ".join(which)) for line, which in designs.items()]
    return "\n".join(lines) + "\n"


def test_the_manual_has_the_table(table: Mapping[tuple[str, str, str], list[str]]) -> None:
    text, now = PAGE.read_text(), written(table)
    if os.environ.get("RECORD_CELLS"):
        PAGE.write_text(re.sub(f"{BEGIN}.*?{END}", lambda _: BEGIN + now + END, text, flags=re.DOTALL))
    assert f"{BEGIN}{now}{END}" in PAGE.read_text()
