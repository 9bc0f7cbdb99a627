"""Telemetry for operators: metrics for Prometheus, traces for OpenTelemetry, losses of the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.api.middleware import RequestSink
from app.services.present import Observers
from app.telemetry.metrics import ServiceMetrics

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The observers of work and of requests; metrics and provider of traces are None when these are switched off."""

    observers: Observers
    sinks: Sequence[RequestSink]
    metrics: ServiceMetrics | None
    provider: "TracerProvider | None"
