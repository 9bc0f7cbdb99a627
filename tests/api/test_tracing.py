"""Spans for OpenTelemetry: one for each request, a child of the caller's, with what it took inside."""

import logging
import subprocess
import sys
from collections.abc import Iterator, Mapping

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from app.settings import Settings
from app.wiring import build_telemetry
from tests.api.answers import create, evaluation
from tests.api.conftest import usual_settings
from tests.api.test_metrics import wait_until
from tests.serving import Served

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CALLER = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}
SCORES = {"kind": "scores", "y_true": [0, 1, 0, 1, 1], "scores": [0.1, 0.9, 0.4, 0.3, 0.8], "threshold": 0.5}


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    return usual_settings(database_url)


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture(scope="module")
def client(settings: Settings, exporter: InMemorySpanExporter) -> Iterator[httpx.Client]:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = build_telemetry(settings.model_copy(update={"access_log": True}), "1", provider)
    with Served(settings, telemetry) as url, httpx.Client(base_url=url, timeout=60) as opened:
        yield opened


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Iterator[InMemorySpanExporter]:
    exporter.clear()
    yield exporter
    exporter.clear()


def by_name(spans: InMemorySpanExporter) -> Mapping[str, ReadableSpan]:
    return {span.name: span for span in spans.get_finished_spans()}


def test_a_request_continues_the_trace_of_its_caller(client: httpx.Client, spans: InMemorySpanExporter) -> None:
    reply = client.post("/v1/evaluations", json=evaluation(), headers={**CALLER, "X-Request-ID": "mine"})
    assert reply.status_code == 201
    found = by_name(spans)
    request = found["POST /v1/evaluations"]
    assert request.context is not None
    assert request.parent is not None
    assert f"{request.context.trace_id:032x}" == TRACE
    assert f"{request.parent.span_id:016x}" == PARENT
    assert request.context.trace_state["vendor"] == "1"
    assert request.kind is SpanKind.SERVER
    assert dict(request.attributes or {}) == {
        "http.request.method": "POST",
        "http.route": "/v1/evaluations",
        "http.response.status_code": 201,
        "prevail.request_id": "mine",
    }
    for name in ("compute evaluate", "database insert"):
        inner = found[name]
        assert inner.parent is not None
        assert inner.parent.span_id == request.context.span_id
        assert inner.start_time is not None
        assert inner.end_time is not None
        assert request.start_time is not None
        assert request.end_time is not None
        assert inner.start_time <= inner.end_time <= request.end_time


def test_without_a_caller_a_trace_begins_here(client: httpx.Client, spans: InMemorySpanExporter) -> None:
    for parent in ("", "nonsense", f"ff-{TRACE}-{PARENT}-01", f"00-{TRACE}-0000000000000000-01"):
        client.get("/v1/models", headers={"traceparent": parent})
    wait_until(lambda: len(served(spans)) == 4)
    roots = [span for span in spans.get_finished_spans() if span.name == "GET /v1/models"]
    assert len(roots) == 4
    assert all(span.parent is None for span in roots)
    assert len({span.context.trace_id for span in roots if span.context is not None}) == 4


def test_what_a_process_computes_has_a_span(client: httpx.Client, spans: InMemorySpanExporter) -> None:
    assert client.post("/v1/metrics/compute", json={"input": SCORES}).status_code == 200
    attributes = by_name(spans)["compute evaluate"].attributes
    assert attributes == {"prevail.where": "process"}


def served(spans: InMemorySpanExporter) -> list[ReadableSpan]:
    return [span for span in spans.get_finished_spans() if span.kind is SpanKind.SERVER]


def test_refusals_have_their_reason_and_no_address(client: httpx.Client, spans: InMemorySpanExporter) -> None:
    client.get("/v1/gates/hidden")
    client.get("/hidden")
    # A span ends after its answer was sent.
    wait_until(lambda: len(served(spans)) == 2)
    first, second = served(spans)
    assert (first.name, second.name) == ("GET /v1/gates/{name}", "GET")
    for span in (first, second):
        assert span.attributes is not None
        assert span.attributes["error.type"] == "not_found"
        # The caller's fault, not ours.
        assert span.status.status_code is StatusCode.UNSET
    assert "hidden" not in "".join(span.to_json() for span in spans.get_finished_spans())


def test_the_log_has_the_trace(
    client: httpx.Client, spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="prevail.requests"):
        client.get("/v1/models")
    (line,) = (record.getMessage() for record in caplog.records if record.name == "prevail.requests")
    context = by_name(spans)["GET /v1/models"].context
    assert context is not None
    assert f'"trace":"{context.trace_id:032x}"' in line


@pytest.mark.slow
def test_nothing_of_it_is_imported_unasked() -> None:
    code = "import sys, app.main; app.main.create(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "app.telemetry.metrics" in done.stdout
    assert "app.telemetry.tracing" not in done.stdout
    assert "opentelemetry.sdk" not in done.stdout
    # Nor what reads data by reference.
    assert "pyarrow.dataset" not in done.stdout


def test_it_reports_an_own_evaluation_once(client: httpx.Client, spans: InMemorySpanExporter) -> None:
    create(client, evaluation())
    names = [span.name for span in spans.get_finished_spans()]
    assert names.count("POST /v1/evaluations") == 1
    assert names.count("database insert") == 1
