"""The metrics of a run, in the SDK's form, written at its end."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Any, Final, cast

from singer_sdk import metrics

from tap_audit_events.events.stream_names import STREAM
from tap_audit_events.reporting.summary import Report

ENDPOINT: Final = "/v1/organizations/{organizationId}/audit_events"


class RunMetric(StrEnum):
    """Metrics for which the SDK has no name."""

    RETRY_COUNT = "http_retry_count"
    LAG_SECONDS = "lag_seconds"


def write_metrics(report: Report) -> None:
    """Write the metrics of a run, however it ended."""
    requests = report.run.requests
    _write("counter", metrics.Metric.HTTP_REQUEST_COUNT, requests.sent)
    _write("counter", RunMetric.RETRY_COUNT, requests.retries)
    if requests.sent:
        mean_seconds = requests.request_seconds / requests.sent
        _write("timer", metrics.Metric.HTTP_REQUEST_DURATION, mean_seconds)
    if (seconds := report.lag_seconds()) is not None:
        _write("gauge", RunMetric.LAG_SECONDS, round(seconds, 3))


def _write(metric_type: str, metric: metrics.Metric | RunMetric, value: float) -> None:
    tags: dict[str, Any] = {metrics.Tag.STREAM: STREAM, metrics.Tag.PID: os.getpid()}
    if metric != RunMetric.LAG_SECONDS:
        tags[metrics.Tag.ENDPOINT] = ENDPOINT
    point = metrics.Point(metric_type, cast("metrics.Metric", metric), value, tags)
    metrics.log(metrics.get_metrics_logger(), point)
