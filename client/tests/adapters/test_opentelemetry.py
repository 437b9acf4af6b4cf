"""Span events and counters for OpenTelemetry."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from switchgear.adapters import opentelemetry
from switchgear.journal import record
from switchgear.patterns.fallback import Fallback

CLIENT = Path(__file__).parents[2]


@pytest.fixture
def reader():
    return InMemoryMetricReader()


@pytest.fixture
def spans():
    return InMemorySpanExporter()


@pytest.fixture
def tracer(spans):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    return provider.get_tracer("test")


@pytest.fixture(autouse=True)
def _instrumented(reader):
    end = opentelemetry.instrument(MeterProvider(metric_readers=[reader]))
    yield
    end()


def counted(reader):
    data = reader.get_metrics_data()
    if data is None:
        return {}
    return {
        (point.attributes["event"], point.attributes["about"]): point.value
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    }


def test_call_that_falls_back_is_an_event_of_the_current_span_and_counted(reader, tracer, spans):
    def fails():
        raise ConnectionError("no route to host")

    with tracer.start_as_current_span("request"):
        Fallback("core->oracle", default=0).run(fails)
    Fallback("core->oracle", default=0).run(fails)

    (span,) = spans.get_finished_spans()
    (event,) = span.events
    assert event.name == "switchgear.call_fallback"
    assert dict(event.attributes) == {
        "switchgear.about": "core->oracle",
        "switchgear.source": "default",
        "switchgear.error": "ConnectionError",
    }
    assert counted(reader) == {("call_fallback", "core->oracle"): 2}


def test_what_is_told_is_plain_short_and_not_too_much(tracer, spans):
    with tracer.start_as_current_span("request"):
        record("call_retried", "a" * 500, text="x" * 500, thing=object(), seconds=0.5, sure=True)
        record("call_retried", "b", **{f"f{n}": n for n in range(50)})

    first, second = spans.get_finished_spans()[0].events
    assert dict(first.attributes) == {
        "switchgear.about": "a" * 200,
        "switchgear.text": "x" * 200,
        "switchgear.seconds": 0.5,
        "switchgear.sure": True,
    }
    assert len(second.attributes) == 20


def test_too_many_names_are_counted_as_others(reader):
    for n in range(opentelemetry.MAX_SUBJECTS + 20):
        record("call_retried", f"n{n}")

    counts = counted(reader)
    assert len(counts) == opentelemetry.MAX_SUBJECTS + 1
    assert counts["call_retried", "other"] == 20


def test_without_an_sdk_nothing_is_told_and_nothing_fails():
    program = """
import sys
sys.modules["opentelemetry.sdk"] = None
from switchgear.adapters import opentelemetry
from switchgear.patterns.fallback import Fallback
end = opentelemetry.instrument()
def fails(): raise ConnectionError
assert Fallback("a", default=7).run(fails).value == 7
end()
print("fine")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(CLIENT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("fine\n", "")
