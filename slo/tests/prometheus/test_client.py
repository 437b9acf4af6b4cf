"""Queries to Prometheus, their results, and servers that must not be queried."""

import re
import socket
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from slo.ingest.prometheus import client
from slo.ingest.prometheus.client import CounterQuery, CounterReading

from .fake_server import fake_prometheus, vector

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def server():
    with fake_prometheus() as fake:
        fake.says(good=99, total=100)
        yield fake


def question(url, minutes=1, **more):
    moments = tuple(AT + place * MINUTE for place in range(minutes))
    return CounterQuery(
        **{"url": url, "good": "good", "total": "total", "moments": moments, **more}
    )


def run_query(url, **more):
    resolver = more.pop("resolver", None)
    options = {"resolver": resolver} if resolver else {}
    return client.query_all({1: question(url, **more)}, **options)[1]


def test_both_counters_are_asked_for_at_each_moment(server):
    server.says(good=lambda at: at // 60, total=lambda at: at // 30)

    found = run_query(server.url, minutes=3)

    minute = int(AT.timestamp()) // 60
    assert found.readings == tuple(
        CounterReading(AT + n * MINUTE, minute + n, 2 * (minute + n)) for n in range(3)
    )
    assert (found.queried, found.error) == (3, "")
    assert sorted(server.requests) == sorted(
        (query, int(AT.timestamp()) + 60 * n) for n in range(3) for query in ("good", "total")
    )
    assert set(server.paths) == {"/api/v1/query"}


def test_server_below_a_path_is_asked_there(server):
    run_query(f"{server.url}/prom")

    assert set(server.paths) == {"/prom/api/v1/query"}


def test_query_reaches_the_server_as_it_was_written(server):
    query = 'sum(rate(x{code!~"5..",path="/a b?&=#+é"}[5m]))'
    server.says(**{query: 7})

    found = run_query(server.url, good=query, total=query)

    assert found.readings == (CounterReading(AT, 7, 7),)


def test_no_series_is_no_reading_and_no_error(server):
    server.says(good=None)

    found = run_query(server.url, minutes=2)

    assert (found.readings, found.queried, found.error) == ((), 2, "")


def scalar(value):
    data = {"resultType": "scalar", "result": [AT.timestamp(), value]}
    return orjson.dumps({"status": "success", "data": data})


def test_a_scalar_is_a_number_too(server):
    server.says(total=scalar("1e3"))

    assert run_query(server.url).readings == (CounterReading(AT, 99, 1000),)


HISTOGRAM = orjson.dumps(
    {
        "status": "success",
        "data": {"resultType": "vector", "result": [{"metric": {}, "histogram": [0, {}]}]},
    }
)
MATRIX = orjson.dumps({"status": "success", "data": {"resultType": "matrix", "result": []}})


@pytest.mark.parametrize(
    ("values", "error"),
    [
        (["1", "2"], "total: it returned 2 series"),
        ("NaN", "total: its value is NaN"),
        ("+Inf", r"total: its value is \+Inf"),
        ("-Inf", "total: its value is -Inf"),
        ("-1", "total: its value is -1"),
        ("1e16", "total: its value is 1e16, but must be at most"),
        ("1_000", "total: its value is 1_000"),
        ("98", r"good \(99\) is more than total \(98\)"),
        (b"<html>sign in</html>", "total: the response is not JSON"),
        (b"[]", "total: the response is not from Prometheus"),
        (b"{}", "total: the response has no data"),
        (HISTOGRAM, "total: it returned a histogram"),
        (MATRIX, "total: it returned a matrix"),
        (scalar(1), "total: the response is not from Prometheus"),
        (b'{"data":{"resultType":"scalar","result":{}}}', "total: it returned a scalar"),
    ],
)
def test_what_is_no_counter_is_named_and_the_next_moment_is_asked_for(server, values, error):
    first = int(AT.timestamp())
    server.says(total=lambda at: values if at == first else 100)

    alone, followed = run_query(server.url), run_query(server.url, minutes=2)

    assert alone.readings == ()
    assert alone.queried == 1
    assert re.match(error, alone.error)
    assert followed.readings == (CounterReading(AT + MINUTE, 99, 100),)
    assert (followed.queried, followed.error) == (2, "")


def test_error_of_the_server_is_told_in_its_words_and_asked_for_again(server):
    server.status = 400
    server.says(good=b'{"status":"error","errorType":"bad_data","error":"parse\\nerror: x"}')

    found = run_query(server.url, minutes=3)

    assert found.error == "good: status 400: parse error: x"
    assert (found.readings, found.queried) == ((), 0)
    assert len(server.requests) == 2


def test_redirect_is_not_followed(server):
    server.status = 302

    assert run_query(server.url).error == "good: status 302"


def test_answer_that_has_no_end_is_not_read_to_it(server):
    server.says(good=b"[" + b"1," * 200_000)

    assert "too long" in run_query(server.url).error


def test_server_that_hangs_is_given_up(server, monkeypatch):
    monkeypatch.setattr(client, "RESPONSE_TIMEOUT_SECONDS", 0.2)
    server.hangs = 0.8

    found = run_query(server.url, minutes=3)

    assert found.error == "good: no response within 0.2 s"
    assert (found.readings, found.queried) == ((), 0)


def test_server_that_is_away_is_not_tried_for_each_question():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    tried = []

    def resolver(host, port):
        tried.append(host)
        return ["127.0.0.1"]

    url = f"http://prometheus.test:{port}"
    found = client.query_all({n: question(url, 5) for n in range(20)}, resolver=resolver)

    assert {one.error for one in found.values()} == {"connection failed"}
    assert len(tried) <= 2 * client.MAX_CONCURRENT_PER_SERVER


def test_one_that_is_away_keeps_no_other_from_being_asked(server):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        away = f"http://127.0.0.1:{listener.getsockname()[1]}"

    found = client.query_all({1: question(away), 2: question(server.url)})

    assert found[1].error == "connection failed"
    assert found[2].readings == (CounterReading(AT, 99, 100),)


def test_no_more_than_so_many_are_asked_at_once(server):
    server.hangs = 0.02

    client.query_all({n: question(server.url, 2) for n in range(12)})

    assert len(server.requests) == 48
    assert server.most_at_once <= 2 * client.MAX_CONCURRENT_PER_SERVER


def test_what_can_not_be_asked_in_time_is_left_without_an_error(server):
    server.hangs = 0.05

    found = client.query_all({n: question(server.url, 10) for n in range(8)}, seconds=0.2)

    assert {one.error for one in found.values()} == {""}
    assert 0 < sum(one.queried for one in found.values()) < 80
    assert all(len(one.readings) == one.queried for one in found.values())


@pytest.mark.parametrize("address", ["169.254.169.254", "10.0.0.7", "::1"])
def test_inside_of_the_house_is_not_asked_unless_its_own_variable_allows_it(
    server, settings, address
):
    settings.PROMETHEUS_ALLOW = ("192.168.7.0/24",)
    settings.WEBHOOK_ALLOW = settings.PROBE_ALLOW = ("0.0.0.0/0", "::/0")

    written = run_query(server.url)
    behind = run_query("https://prometheus.test/", resolver=lambda *_: [address])

    assert "PROMETHEUS_ALLOW" in written.error
    assert "PROMETHEUS_ALLOW" in behind.error
    assert server.requests == []


def test_password_in_the_address_is_refused(server):
    assert "must not contain a user" in run_query(server.url.replace("//", "//kim:secret@")).error


def test_vector_of_the_stand_in_is_that_of_a_real_one():
    assert vector(1, 5)["data"]["result"] == [{"metric": {"n": "0"}, "value": [5, "1"]}]
