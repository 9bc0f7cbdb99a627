"""Telemetry for operators: metrics for Prometheus, traces for OpenTelemetry, losses of the database."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.api.middleware import RequestLog, RequestSink
from app.services.present import Observer, Observers
from app.telemetry.metrics import DatabaseLog, ServiceMetrics

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The observers of work and of requests.

    Attributes:
        observers: Services and store tell them.
        sinks: The outermost layer tells them.
        metrics: None when nobody may read them: then nothing is counted.
        provider: Of traces; None when none are made.
    """

    observers: Observers
    sinks: Sequence[RequestSink]
    metrics: ServiceMetrics | None
    provider: "TracerProvider | None"


def make_telemetry(
    *, metrics: bool, access_log: bool, provider: "TracerProvider | None", codes: Container[str], version: str
) -> Telemetry:
    """Make the observers that are switched on."""
    observers: list[Observer] = []
    sinks: list[RequestSink] = []
    made = ServiceMetrics(codes, version) if metrics else None
    if made is not None:
        observers.append(made)
        sinks.append(made)
    if access_log:
        observers.append(DatabaseLog())
        sinks.append(RequestLog())
    if provider is not None:
        # Only when it is asked for: OpenTelemetry is an extra.
        from app.telemetry.tracing import SpanObserver

        observers.append(SpanObserver(provider))
    return Telemetry(Observers(observers), sinks, made, provider)
