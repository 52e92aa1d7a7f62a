"""Prometheus series of one server. All exist before the first request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from prometheus_client import Counter, Gauge, Histogram, generate_latest

from ragplane.core.telemetry import new_registry
from serve.batching.work import LANES, BatchReport, Lane
from serve.http.errors import FAILURE_LABELS
from serve.requests import Timings

INFERENCE_ROUTES = (
    "/v1/embeddings",
    "/embeddings",
    "/embed",
    "/embed_sparse",
    "/embed_all",
    "/similarity",
    "/predict",
    "/rerank",
    "/v1/rerank",
    "/v2/rerank",
)
_DROP_CAUSES = ("cancelled", "expired")
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_POWERS = tuple(float(2**n) for n in range(16))
_SHARES = tuple(n / 10 for n in range(1, 11))
# TEI's counters carry no `_total`, and dashboards ask for its names.
_TEI_COUNTER = re.compile(rb"\b(te_request_(?:count|success|failure))_total\b")


class Metrics:
    """Series under TEI's names (`te_`) where the meaning is the same, else under `ragplane_`."""

    def __init__(self, queue_sizes: Callable[[], Mapping[Lane, int]]) -> None:
        """`queue_sizes` is asked at every scrape."""
        self._registry = new_registry()
        self._count = self._counters("te_request_count", "Requests.", "route", INFERENCE_ROUTES)
        self._success = self._counters(
            "te_request_success", "Answered requests.", "route", INFERENCE_ROUTES
        )
        self._failure = self._counters(
            "te_request_failure", "Requests that failed, by cause.", "err", FAILURE_LABELS
        )
        self._duration = self._seconds("te_request_duration", "Whole request, s.")
        self._tokenization = self._seconds("te_request_tokenization_duration", "Tokenising, s.")
        self._queue = self._seconds("te_request_queue_duration", "Waiting for a batch, s.")
        self._inference = self._seconds("te_request_inference_duration", "In the model, s.")
        self._length = self._histogram("te_request_input_length", "Tokens of a request.", _POWERS)
        self._add_batches()
        self._truncated = self._counter("ragplane_truncated_inputs", "Inputs that were cut.")
        self._add_queue_sizes(queue_sizes)

    def _add_batches(self) -> None:
        self._batch_size = self._histogram("te_batch_next_size", "Inputs of a batch.", _POWERS)
        self._batch_tokens = self._histogram(
            "te_batch_next_tokens", "Padded tokens of a batch.", _POWERS
        )
        self._efficiency = self._histogram(
            "ragplane_padding_efficiency", "Tokens over padded tokens of a batch.", _SHARES
        )
        self._fill = self._histogram(
            "ragplane_batch_fill", "Padded tokens over the budget of a batch.", _SHARES
        )
        waits = Histogram(
            "ragplane_queue_wait_seconds",
            "Time of an input in the queue, s.",
            ["lane"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._waits = {lane: waits.labels(lane) for lane in LANES}
        self._dropped = self._counters(
            "ragplane_dropped_inputs", "Inputs dropped at dequeue.", "cause", _DROP_CAUSES
        )
        self._duplicates = self._counter(
            "ragplane_deduplicated_inputs", "Inputs computed by others."
        )
        self._non_finite = self._counter("ragplane_non_finite_outputs", "NaN or infinite outputs.")

    def _add_queue_sizes(self, sizes: Callable[[], Mapping[Lane, int]]) -> None:
        waiting = Gauge("te_queue_size", "Inputs that wait.", registry=self._registry)
        waiting.set_function(lambda: sum(sizes().values()))
        by_lane = Gauge(
            "ragplane_queue_size", "Inputs that wait, by lane.", ["lane"], registry=self._registry
        )
        for lane in LANES:
            by_lane.labels(lane).set_function(partial(_size_of, sizes, lane))

    def request(self, route: str, failure: str | None, duration_s: float) -> None:
        """One finished request; `failure` is the cause's label."""
        self._count[route].inc()
        self._duration.observe(duration_s)
        if failure is None:
            self._success[route].inc()
        else:
            self._failure[failure].inc()

    def inference(self, timings: Timings, tokens: int, truncated_inputs: int) -> None:
        """What one answered request cost."""
        self._tokenization.observe(timings.tokenization_ms / 1e3)
        self._queue.observe(timings.queue_ms / 1e3)
        self._inference.observe(timings.inference_ms / 1e3)
        self._length.observe(tokens)
        self._truncated.inc(truncated_inputs)

    def batch(self, report: BatchReport) -> None:
        """One dequeue."""
        self._dropped["cancelled"].inc(report.cancelled)
        self._dropped["expired"].inc(report.expired)
        self._duplicates.inc(report.duplicates)
        self._non_finite.inc(report.non_finite)
        for lane, wait_ms in report.waits_ms:
            self._waits[lane].observe(wait_ms / 1e3)
        if report.size:
            self._batch_size.observe(report.size)
            self._batch_tokens.observe(report.padded_tokens)
            self._efficiency.observe(report.tokens / report.padded_tokens)
            self._fill.observe(report.padded_tokens / report.budget_tokens)

    def exposition(self) -> bytes:
        """Prometheus text format."""
        return _TEI_COUNTER.sub(rb"\1", generate_latest(self._registry))

    def _counters(
        self, name: str, text: str, label: str, values: Iterable[str]
    ) -> Mapping[str, Counter]:
        counter = Counter(name, text, [label], registry=self._registry)
        return {value: counter.labels(value) for value in values}

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(name, text, registry=self._registry)

    def _seconds(self, name: str, text: str) -> Histogram:
        return self._histogram(name, text, _SECONDS)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, buckets=buckets, registry=self._registry)


def _size_of(sizes: Callable[[], Mapping[Lane, int]], lane: Lane) -> float:
    return sizes()[lane]
