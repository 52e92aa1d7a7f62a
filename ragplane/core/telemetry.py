"""Logs, spans and metrics of one process.

Spans go through the OpenTelemetry API, whose default tracer does nothing and costs next to nothing;
`configure` attaches an exporter when an endpoint is set. Request texts are never logged.
"""

from __future__ import annotations

import logging
import sys

import structlog
from opentelemetry import trace
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector

from ragplane.core.config import Settings

tracer = trace.get_tracer("ragplane")


def new_registry() -> CollectorRegistry:
    """A Prometheus registry of its own, with the series of the process and the platform."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry


def configure(settings: Settings) -> None:
    """Set up logging to stderr and, when `otlp_endpoint` is set, the export of spans."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _renderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )
    # It would log what is wrong with the headers of clients, once for each request.
    logging.getLogger("opentelemetry").setLevel(logging.ERROR)
    if settings.otlp_endpoint:
        _export_spans(settings.otlp_endpoint)


def _renderer() -> structlog.typing.Processor:
    if sys.stderr.isatty():
        return structlog.dev.ConsoleRenderer()
    return structlog.processors.JSONRenderer()


def _export_spans(endpoint: str) -> None:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "ragplane"}))
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
