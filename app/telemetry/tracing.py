"""Traces for OpenTelemetry: a span for each request, and within it one for each computation and use of the database.

Imported only when the operator asks for traces; it needs the extra ``otel``. Where they are sent, under which name and
how many of them say OpenTelemetry's own variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`, …).
"""

import time
from typing import Final

from opentelemetry import trace
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.middleware import Addresses
from app.services.present import Observer

_SCOPE: Final = "prevail"
_FAILED: Final = 500
_NANOSECONDS: Final = 1_000_000_000
_PROPAGATOR: Final = TraceContextTextMapPropagator()


def exporting_provider(version: str) -> TracerProvider:
    """Return a provider that sends spans to the collector that OpenTelemetry's variables name."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: "prevail", SERVICE_VERSION: version}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class Traced:
    """The outermost layer: a span for each request, a child of the caller's `traceparent`."""

    def __init__(self, app: ASGIApp, *, provider: TracerProvider, addresses: Addresses) -> None:
        self._app, self._addresses = app, addresses
        self._tracer = provider.get_tracer(_SCOPE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, state = Headers(scope=scope), scope.setdefault("state", {})
        carrier = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
        method = scope["method"]
        with self._tracer.start_as_current_span(
            method, _PROPAGATOR.extract(carrier), SpanKind.SERVER, {"http.request.method": method}
        ) as span:
            state["trace_id"] = trace.format_trace_id(span.get_span_context().trace_id)

            async def send_noted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    _note_status(span, message["status"])
                await send(message)

            try:
                await self._app(scope, receive, send_noted)
            finally:
                route = state.get("route") or self._addresses.template(scope["path"])
                if route is not None:
                    span.update_name(f"{method} {route}")
                    span.set_attribute("http.route", route)
                for attribute, name in (("prevail.request_id", "request_id"), ("error.type", "code")):
                    if state.get(name) is not None:
                        span.set_attribute(attribute, state[name])


def _note_status(span: Span, status: int) -> None:
    span.set_attribute("http.response.status_code", status)
    if status >= _FAILED:
        span.set_status(Status(StatusCode.ERROR))


class SpanObserver(Observer):
    """Makes spans of work that is done, in the request that it was done for."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer(_SCOPE)

    def observed(self, what: str, amount: float, **labels: str) -> None:
        """A span of arithmetic, which of several requests on the event loop the first has, or of the database."""
        match what:
            case "compute_seconds":
                self._span(f"compute {labels['kind']}", amount, {"prevail.where": labels["where"]})
            case "database_seconds":
                self._span(f"database {labels['work']}", amount, {"db.system.name": "postgresql"})

    def _span(self, name: str, seconds: float, attributes: dict[str, str]) -> None:
        # Outside of requests there is nothing that it would belong to.
        if trace.get_current_span().get_span_context().is_valid:
            end = time.time_ns()
            span = self._tracer.start_span(
                name, kind=SpanKind.INTERNAL, attributes=attributes, start_time=end - int(seconds * _NANOSECONDS)
            )
            span.end(end)
