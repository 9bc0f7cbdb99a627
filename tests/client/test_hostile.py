"""Answers that are late, wrong, cut off, or from something that is not the service."""

import asyncio
import json
import re
from argparse import Namespace
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import prevail
import pytest
from prevail.command.main import _complain
from prevail.command.output import put, written
from prevail.results.listing import Facts
from prevail.wire import exchange
from prevail.wire.exchange import Retries
from prevail.wire.steps import Call, Lost, Pause, Reply

from tests.client.conftest import AT_ONCE, speaking_to

EVALUATION = {"id": "0190", "input": {"labels": ["a", "b"]}, "metrics": {}, "headline": {"metrics": {}}}


def answering(*answers: httpx.Response | Exception) -> tuple[prevail.Client, list[httpx.Request]]:
    """A client of what gives these answers, the last one again and again; and what it is asked."""
    asked: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        request.read()
        answer = answers[min(len(asked), len(answers) - 1)]
        asked.append(request)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    return speaking_to(handler), asked


def busy(**headers: str) -> httpx.Response:
    return httpx.Response(503, json={"code": "overloaded", "detail": "more is waiting"}, headers=headers)


@pytest.mark.parametrize(
    "first",
    [
        busy(),
        httpx.Response(502, text="<html>Bad Gateway</html>"),
        httpx.Response(429, json={"code": "rate_limited", "detail": "too often"}, headers={"Retry-After": "0"}),
        httpx.Response(409, json={"code": "idempotency_key_in_flight", "detail": "being worked on"}),
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("late"),
        httpx.RemoteProtocolError("cut off"),
    ],
)
def test_what_passes_is_tried_again_with_the_same_key(first: httpx.Response | Exception) -> None:
    client, asked = answering(first, first, httpx.Response(201, json=EVALUATION))
    found = client.evaluate(["a", "b"], ["a", "a"], model="m", dataset="d")
    assert found.id == "0190"
    assert len(asked) == 3
    keys = {request.headers["idempotency-key"] for request in asked}
    assert len(keys) == 1
    assert len({request.content for request in asked}) == 1


def test_two_requests_have_two_keys() -> None:
    client, asked = answering(httpx.Response(201, json=EVALUATION))
    for _ in range(2):
        client.evaluate(["a", "b"], ["a", "a"], model="m", dataset="d")
    assert asked[0].headers["idempotency-key"] != asked[1].headers["idempotency-key"]


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (httpx.Response(422, json={"code": "x", "detail": "no"}), prevail.InvalidInput, "no"),
        (httpx.Response(409, json={"code": "no_samples_kept", "detail": "none"}), prevail.Conflict, "none"),
        (
            httpx.Response(401, json={"code": "unauthenticated", "detail": "no key"}),
            prevail.NotAllowed,
            "PREVAIL_API_KEY",
        ),
        (httpx.Response(413, json={"code": "too_large", "detail": "large"}), prevail.TooLarge, "large"),
        (httpx.Response(507, json={"code": "no_space", "detail": "full"}), prevail.ServerFault, "full"),
        (httpx.Response(500, json={"code": "internal_error", "detail": "log"}), prevail.ServerFault, "log"),
        (httpx.Response(404, text="<html>nginx</html>"), prevail.ServerFault, "does not send.*nginx.*its address"),
        (httpx.Response(200, text="<html>login</html>"), prevail.ServerFault, "without the JSON.*login"),
        (httpx.Response(200, json=[1]), prevail.ServerFault, "without the JSON"),
        (
            httpx.Response(200, content=b'{"id": 1', headers={"Content-Type": "application/json"}),
            prevail.ServerFault,
            "without the JSON",
        ),
        (httpx.Response(302, headers={"Location": "/login"}), prevail.PrevailError, "answered 302.*an empty body"),
        (httpx.Response(422, json={"errors": 5, "detail": None, "code": None}), prevail.PrevailError, "422"),
    ],
)
def test_what_stays_is_said_at_once(answer: httpx.Response, kind: type[Exception], said: str) -> None:
    client, asked = answering(answer)
    with pytest.raises(kind, match=f"(?s){said}"):
        client.evaluation("0190a000-0000-7000-8000-000000000000")
    assert len(asked) == 1


def test_giving_up_says_after_how_many_tries_and_what_was_kept() -> None:
    client, asked = answering(busy())
    with pytest.raises(prevail.Overloaded, match=r"more is waiting \(5 tries in 0 s\)"):
        client.models()
    assert len(asked) == 5
    client, _ = answering(httpx.ConnectError("refused"))
    with pytest.raises(prevail.NoAnswer, match=r"refused\) \(5 tries.*nothing was saved.*prevail serve"):
        client.models()
    client, _ = answering(httpx.ReadTimeout("late"))
    with pytest.raises(prevail.NoAnswer, match="it is unknown whether anything was saved"):
        client.models()


def test_a_certificate_that_does_not_fit_is_not_tried_again() -> None:
    client, asked = answering(httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"))
    with pytest.raises(prevail.NoAnswer, match="CERTIFICATE"):
        client.models()
    assert len(asked) == 1


def test_what_was_deleted_by_a_try_whose_answer_was_lost_is_deleted() -> None:
    gone = httpx.Response(404, json={"code": "not_found", "detail": "none"})
    client, asked = answering(httpx.ReadTimeout("late"), gone)
    client.delete_gate("g")
    assert len(asked) == 2
    client, _ = answering(gone)
    with pytest.raises(prevail.NotFound):
        client.delete_gate("g")


def test_a_secret_whose_answer_was_lost_is_said_to_be_lost() -> None:
    """Without a key a second try would change what the first one made, and its answer have no secret."""
    late, shown = httpx.ReadTimeout("late"), httpx.Response(409, json={"code": "shown_once", "detail": "shown then"})
    client, asked = answering(late, shown)
    with pytest.raises(prevail.Conflict, match="shown then"):
        client.put_webhook("chat", "https://hooks.example", ["gate.checked"])
    first, second = (request.headers["Idempotency-Key"] for request in asked)
    assert first == second


def steps_of(outcomes: list[Reply | Lost], retries: Retries) -> list[float]:
    """The pauses of an exchange with these outcomes."""
    flow = exchange.exchange(Call("GET", "/x"), retries)
    pauses, step, left = [], flow.send(None), [*outcomes]
    while left or isinstance(step, Pause):
        try:
            if isinstance(step, Pause):
                pauses.append(step.seconds)
                step = flow.send(None)
            else:
                step = flow.send(left.pop(0))
        except (StopIteration, prevail.PrevailError):
            break
    return pauses


def test_pauses_grow_and_retry_after_is_obeyed() -> None:
    refused = Reply(503, {"content-type": "application/json"}, b'{"code": "overloaded", "detail": "x"}')
    usual = steps_of([refused] * 5, Retries())
    assert len(usual) == 4
    for pause, longest in zip(usual, (0.5, 1, 2, 4), strict=True):
        assert longest / 2 <= pause <= longest
    asked = Reply(503, {**refused.headers, "retry-after": "7"}, refused.content)
    assert steps_of([asked], Retries(times=1)) == [7.0]
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    dated = Reply(503, {**refused.headers, "retry-after": later}, refused.content)
    assert steps_of([dated], Retries(times=1))[0] == pytest.approx(30, abs=2)
    odd = Reply(503, {**refused.headers, "retry-after": "soon"}, refused.content)
    assert steps_of([odd], Retries(times=1))[0] <= 0.5
    # More than there is time for: said at once, not after it.
    assert steps_of([Reply(503, {"retry-after": "3600"}, b"")], Retries()) == []


def job(status: str, **more: object) -> httpx.Response:
    return httpx.Response(200, json={"id": "j1", "status": status, **more})


def test_jobs_are_followed_to_their_result() -> None:
    accepted = httpx.Response(202, headers={"Location": "/v1/jobs/j1"}, json={"id": "j1", "status": "queued"})
    done = job("succeeded", result="/v1/evaluations/0190")
    client, asked = answering(accepted, job("queued"), job("running"), done, httpx.Response(200, json=EVALUATION))
    assert client.evaluate(["a", "b"], ["a", "a"], model="m", dataset="d").id == "0190"
    assert [request.url.path for request in asked[1:]] == [*["/v1/jobs/j1"] * 3, "/v1/evaluations/0190"]


def test_a_job_that_fails_says_why() -> None:
    problem = {
        "status": 422,
        "code": "invalid_input",
        "detail": "no rows",
        "errors": [{"pointer": "/input/y_true", "detail": "no rows"}],
    }
    client, _ = answering(job("failed", problem=problem))
    with pytest.raises(prevail.InvalidInput, match="y_true: no rows"):
        client.wait("j1")
    client, _ = answering(job("failed", problem={"status": 503, "code": "overloaded", "detail": "no room"}))
    with pytest.raises(prevail.Overloaded, match="no room"):
        client.wait("j1")
    client, _ = answering(job("cancelled"))
    with pytest.raises(prevail.JobFailed, match="was cancelled"):
        client.wait("j1")
    client, _ = answering(job("running"))
    with pytest.raises(prevail.JobFailed, match=r"still running.*it goes on"):
        client.wait("j1", timeout=0)


def test_later_asks_for_a_job_and_answers_it() -> None:
    accepted = httpx.Response(202, headers={"Location": "/v1/jobs/j1"}, json={"id": "j1", "status": "queued"})
    client, asked = answering(
        accepted, job("queued"), job("succeeded", result="/v1/evaluations/0190"), httpx.Response(200, json=EVALUATION)
    )
    found = client.evaluate_later(request={"input": {}})
    assert asked[0].headers["prefer"] == "respond-async"
    assert found["status"] == "queued"
    assert client.wait(found)["id"] == "0190"


def test_faults_are_said_in_the_words_of_the_caller() -> None:
    errors = [
        {"pointer": "/options/metrics/1", "code": "unknown_metric", "detail": "unknown metric f_score"},
        {"pointer": "/input/matrix/2/0", "code": "x", "detail": "expected 0 or more"},
        {"pointer": "/rules/0/min", "code": "x", "detail": "expected a number"},
        {"parameter": "limit", "code": "x", "detail": "expected at most 200"},
    ]
    client, _ = answering(httpx.Response(422, json={"code": "invalid_request", "detail": "d", "errors": errors}))
    with pytest.raises(prevail.InvalidInput) as refused:
        client.models()
    assert str(refused.value).splitlines() == [
        "metrics[1]: unknown metric f_score",
        "matrix[2][0]: expected 0 or more",
        "rules[0].min: expected a number",
        "limit: expected at most 200",
    ]
    assert refused.value.code == "invalid_request"
    assert refused.value.faults[0].pointer == "/options/metrics/1"


def test_streams_are_sent_again_from_their_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prevail.uploads.inputs.STREAMED_CELLS", 1)
    client, asked = answering(busy(), httpx.Response(201, json=EVALUATION))
    client.evaluate(["a", "b"], ["a", "a"], model="m", dataset="d")
    assert asked[0].content == asked[1].content
    assert b"ARROW" not in asked[0].content[:8]
    assert json.loads(asked[0].content.split(b"\r\n\r\n")[1].split(b"\r\n--")[0])["input"]["kind"] == "predictions"


def test_the_asynchronous_client_does_the_same(base_url: str) -> None:
    async def use() -> None:
        async with prevail.AsyncClient(base_url) as client:
            found = await client.evaluate(matrix=[[5, 1], [1, 5]])
            assert float(found["accuracy"]) == pytest.approx(10 / 12)
            assert str(found).startswith("an evaluation that is not saved")
            report = await client.report(found)
            assert str(found) == report.rstrip("\n")
            with pytest.raises(prevail.NotFound):
                await client.gate("nowhere")
            several = await asyncio.gather(*(client.metrics("recall") for _ in range(3)))
            assert len({len(one) for one in several}) == 1

    asyncio.run(use())

    async def refused() -> None:
        transport = httpx.MockTransport(lambda _: busy())
        async with prevail.AsyncClient("http://e.test", retries=AT_ONCE, transport=transport) as client:
            with pytest.raises(prevail.Overloaded, match="5 tries"):
                await client.models()

    asyncio.run(refused())


def test_where_and_as_whom_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("URL", "http://there.test/"), ("API_KEY", "pv_1"), ("PROJECT", "p"), ("TIMEOUT", "7")):
        monkeypatch.setenv(f"PREVAIL_{name}", value)
    asked: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={"items": [], "next_cursor": None})

    make: Callable[..., prevail.Client] = prevail.Client
    client = make(transport=httpx.MockTransport(handler))
    client.models()
    assert str(asked[0].url).startswith("http://there.test/v1/models")
    assert asked[0].headers["authorization"] == "Bearer pv_1"
    assert asked[0].headers["x-prevail-project"] == "p"
    assert client.timeout == 7
    assert "pv_1" not in repr(client)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("URL", "127.0.0.1:8000"),
        ("URL", "ftp://there.test"),
        ("URL", "http://"),
        ("URL", "http://there..test"),
        ("API_KEY", "pv_1\n"),
        ("API_KEY", "schlüssel"),
        ("PROJECT", "ü"),
        ("TIMEOUT", "a minute"),
        ("TIMEOUT", "0"),
        ("TIMEOUT", "nan"),
        ("TIMEOUT", "inf"),
    ],
)
def test_what_cannot_be_sent_to_or_with_is_said_at_once(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"PREVAIL_{name}", value)
    with pytest.raises(prevail.InvalidInput, match=f"{name.replace('_', ' ')}: expected".lower().replace("api", "API")):
        prevail.Client()


def test_whether_all_is_well_is_an_answer_and_no_error() -> None:
    def lost(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    for handler, well in ((lost, False), (lambda _: busy(), False), (lambda _: httpx.Response(200, json={}), True)):
        client = speaking_to(handler)
        assert (client.is_alive(), client.is_ready()) == (well, well)


ESCAPES = "\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1bPq\x1b\\ \x9b2Jgone \x07\x08\rback\x7f\x00"


@pytest.mark.parametrize("form", ["text", "markdown", "csv", "html"])
def test_nothing_that_a_server_sends_is_obeyed_by_a_terminal(capsys: pytest.CaptureFixture[str], form: str) -> None:
    put(f"a\tb\r\n{ESCAPES}\n", Namespace(output=form, color="always", write=None))
    assert capsys.readouterr().out == "a\tb\r\nred link gone back\n"


def test_nor_in_json_and_in_what_is_complained_of(capsys: pytest.CaptureFixture[str]) -> None:
    client, _ = answering(httpx.Response(404, json={"code": "not_found", "detail": ESCAPES}))
    text = written(client, Facts({"name": ESCAPES, "ü": "é"}), "json")
    assert json.loads(text) == {"name": ESCAPES, "ü": "é"}
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    assert "é" in text
    _complain(f"the service says {ESCAPES}", 1)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", capsys.readouterr().err)
