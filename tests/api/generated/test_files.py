"""Forms with a file and gates with expressions: what the document can only say in words, checked against it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from tests.api.generated import strategies
from tests.api.generated.document import SCHEMA
from tests.api.generated.kept import Kept
from tests.api.generated.profile import generated
from tests.api.generated.test_formats import FORMATS, KINDS, split

pytestmark = pytest.mark.slow

Send = Callable[..., Any]


@pytest.fixture(scope="module")
def send(base_url: str, session: requests.Session) -> Send:
    """Send a request of our own to an operation, and hold its answer against the document."""

    def sent(method: str, path: str, **given: Any) -> Any:
        case = SCHEMA[path][method].Case(**given)
        return case.call_and_validate(base_url=base_url, session=session)

    return sent


OPERATIONS = ("/v1/evaluations", "/v1/metrics/compute")
names = st.fixed_dictionaries({"name": strategies.visible_text})


@pytest.mark.parametrize("path", OPERATIONS)
@generated(0.5)
@given(
    source=st.one_of(*KINDS.values()),
    write=st.sampled_from(sorted(FORMATS)),
    metric=strategies.one_value,
    model=names,
    dataset=names,
)
def test_a_right_form_is_taken(
    send: Send, path: str, source: Any, write: str, metric: str, model: Any, dataset: Any
) -> None:
    kept, columns = split(source)
    body = {"input": kept, "model": model, "dataset": dataset, "options": {"metrics": [metric]}}
    form = {"evaluation": json.dumps(body), "data": FORMATS[write](columns)}
    reply = send("POST", path, body=form, media_type="multipart/form-data")
    assert reply.status_code == (201 if path == "/v1/evaluations" else 200), reply.text
    assert reply.json()["input"]["n_samples"] > 0


@pytest.mark.parametrize("path", OPERATIONS)
@generated(0.5)
@given(
    source=st.one_of(*KINDS.values()),
    write=st.sampled_from(sorted(FORMATS)),
    place=st.floats(0, 1),
    bytes_there=st.binary(min_size=1, max_size=9),
    evaluation=st.none() | st.text(max_size=30),
)
def test_a_broken_form_is_answered(
    send: Send, path: str, source: Any, write: str, place: float, bytes_there: bytes, evaluation: str | None
) -> None:
    kept, columns = split(source)
    data = bytearray(FORMATS[write](columns))
    start = int(place * len(data))
    data[start : start + len(bytes_there)] = bytes_there
    told = json.dumps({"input": kept, "model": {"name": "m"}, "dataset": {"name": "d"}})
    form = {"evaluation": told if evaluation is None else evaluation, "data": bytes(data)}
    reply = send("POST", path, body=form, media_type="multipart/form-data")
    # A byte in a place that says nothing changes nothing.
    assert reply.status_code in (200, 201, 400, 413, 422), reply.text


@generated()
@given(data=st.data())
def test_a_gate_with_any_metric_is_kept_and_checks(send: Send, kept: Kept, data: st.DataObject) -> None:
    rules = [_rule(data.draw) for _ in range(data.draw(st.integers(1, 3)))]
    made = send("PUT", "/v1/gates/{name}", path_parameters={"name": "drawn"}, body={"rules": rules})
    assert made.status_code in (200, 201), (rules, made.text)
    question = {"evaluation": kept.runs[0], "baseline": kept.runs[1]}
    check = send("POST", "/v1/gates/{name}/checks", path_parameters={"name": "drawn"}, body=question)
    assert check.status_code == 201, (rules, check.text)
    answer = check.json()
    verdicts = {one["verdict"] for one in answer["results"]}
    assert verdicts <= {"pass", "fail", "inconclusive"}
    assert answer["verdict"] in verdicts
    assert (answer["verdict"] == "pass") == (verdicts == {"pass"})


def _rule(draw: Callable[..., Any]) -> dict[str, Any]:
    demand = draw(st.sampled_from(["min", "max", "not_worse_than", "better_than", "equivalent_to"]))
    rule: dict[str, Any] = {"metric": draw(strategies.one_value | strategies.every_class)}
    if demand in ("min", "max"):
        # Within the range of every metric that has one.
        rule[demand] = draw(st.floats(0, 1))
    else:
        rule |= {demand: "baseline", "margin": draw(st.sampled_from([0.001, 0.01, 0.1]))}
    allowed = ["value", "lower"] + ["upper"] * (demand in ("min", "max", "not_worse_than"))
    return {**rule, "bound": draw(st.sampled_from(allowed)), "level": draw(st.sampled_from([0.5, 0.9, 0.95]))}
