"""Metrics as text: as the library would write it, compressed, and built only so often."""

import gzip
import threading

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeHistogramMetricFamily,
    GaugeMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain_text

from controlplane.core import exposition
from controlplane.dataplane import histograms
from controlplane.dataplane.histograms import Histogram

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
PARSERS = {"": plain_text, OPENMETRICS: openmetrics}


class Figures:
    """A metric of each type, with characters that must be escaped."""

    def collect(self):
        gauge = GaugeMetricFamily("a_gauge", 'A "help"\nof \\ two lines.', labels=["b", "a"])
        gauge.add_metric(['quoted " and \\', "line\nend"], 1)
        gauge.add_metric(["정산", ""], float("inf"))
        gauge.add_metric(["x", "y"], 1e300)
        gauge.add_metric(["x", "z"], -0.25)
        counter = CounterMetricFamily("a_counter", "Counts.", labels=["a"])
        counter.add_metric(["x"], 12345678901)
        buckets = GaugeHistogramMetricFamily("a_gauge_histogram", "Of a window.", labels=["a"])
        buckets.add_metric(["x"], [("1.0", 2), ("+Inf", 3)], gsum_value=7)
        seconds = Histogram([0.1, 1])
        for each in (0.1, 0.5, 0.7, 30):
            seconds.observe(each)
        yield from (gauge, counter, buckets)
        yield GaugeMetricFamily("a_plain_one", "Without labels.", value=3)
        yield histograms.build_family("a_histogram", "Seconds.", ("kind",), [(("x",), seconds)])


def registry():
    made = CollectorRegistry()
    made.register(Figures())
    return made


def samples(text, parse):
    return {
        (
            family.name,
            family.type,
            family.documentation,
            sample.name,
            *sorted(sample.labels.items()),
            sample.value,
        )
        for family in parse(text.decode())
        for sample in family.samples
    }


@pytest.mark.parametrize("accept", PARSERS)
def test_the_text_says_what_the_library_would(accept):
    encode, content_type = choose_encoder(accept)

    text, kind = exposition.encode_metrics(registry(), accept)

    assert kind == content_type
    assert samples(text, PARSERS[accept]) == samples(encode(registry()), PARSERS[accept])


def test_a_histogram_counts_what_is_within_each_bound():
    text, _ = exposition.encode_metrics(registry(), "")

    assert b'a_histogram_bucket{kind="x",le="0.1"} 1.0\n' in text
    assert b'a_histogram_bucket{kind="x",le="1.0"} 3.0\n' in text
    assert b'a_histogram_bucket{kind="x",le="+Inf"} 4.0\n' in text
    assert b'a_histogram_count{kind="x"} 4.0\n' in text


class Built:
    """Counts how often a text is built."""

    def __init__(self):
        self.times = 0
        self.version = 1
        self.now = 100.0
        self.cache = exposition.ExpositionCache(self.build, lambda: self.version, lambda: self.now)

    def build(self, accept):
        self.times += 1
        return f"{accept} {self.times}".encode(), choose_encoder(accept)[1]


def test_a_text_is_kept_for_five_seconds_in_each_format():
    built = Built()

    first = built.cache.get("")
    built.now += 4.9
    again = built.cache.get("")
    other = built.cache.get(OPENMETRICS)
    built.now += 0.2
    later = built.cache.get("")

    assert again is first
    assert other.content_type.startswith("application/openmetrics-text")
    assert later is not first
    assert built.times == 3


def test_another_version_is_told_at_once():
    built = Built()
    built.cache.get("")

    built.version = 2
    built.cache.get("")

    assert built.times == 2


def test_scrapers_that_name_any_version_fill_no_memory():
    built = Built()

    for number in range(100):
        built.cache.get(f"application/openmetrics-text; version=1.0.{number}")

    assert len(built.cache._entries) <= exposition.MAX_FORMATS


def test_one_builds_and_the_others_wait_for_it():
    built = Built()
    go_on = threading.Event()
    slow = exposition.ExpositionCache(
        lambda accept: (go_on.wait(5), built.build(accept))[1], lambda: 1, lambda: 0.0
    )
    threads = [threading.Thread(target=slow.get, args=("",)) for _ in range(8)]

    for thread in threads:
        thread.start()
    go_on.set()
    for thread in threads:
        thread.join(5)

    assert built.times == 1


def test_the_text_is_compressed_once_for_those_who_accept_it():
    found = exposition.Exposition(b"switchgear_redis_up 1.0\n" * 100, "text/plain")

    body, headers = found.headers("gzip")
    plain, plain_headers = found.headers("gzip;q=0")

    assert gzip.decompress(body) == plain == found.content
    assert headers["Content-Encoding"] == "gzip"
    assert headers["Content-Length"] == str(len(body))
    assert "Content-Encoding" not in plain_headers
    assert headers["Vary"] == plain_headers["Vary"] == "Accept, Accept-Encoding"
    assert found.headers("gzip")[0] is body
