"""HTTP that keeps to its time and its amount, and tells no secrets."""

import email.utils
import gzip
import socket
import threading
import time

import pytest

from switchgear.console.address import Address
from switchgear.console.errors import RequestFailed
from switchgear.console.transport import Connection
from tests import faults
from tests.fake_console import SNAPSHOT, STREAM, TOKEN, Exchange, chunk, console


def connection(url, token=TOKEN):
    return Connection(Address.parse(url), token)


def test_an_answer_comes_whole_with_its_status_and_headers():
    with console() as there:
        response = connection(there.url).request("GET", SNAPSHOT)
        assert response.status == 200
        assert response.body == there.document
        assert response.headers["etag"] == there.etag
        assert response.sent_at <= response.answered_at <= time.monotonic()
        assert connection(there.url, "wrong").request("GET", SNAPSHOT).status == 401


def test_one_connection_serves_many_requests():
    ports = set()

    def look(exchange: Exchange) -> None:
        ports.add(exchange.connection.getpeername())
        exchange.reply(200, exchange.asked.body)

    with console(lie=look, report_lie=look) as there:
        client = connection(there.url)
        for number in range(5):
            assert client.request("GET", SNAPSHOT).status == 200
            body = b"%d" % number
            assert client.request("POST", "/api/v1/report", body=body).body == body
    assert len(ports) == 1


def test_a_kept_connection_that_was_closed_is_opened_again():
    def once(exchange: Exchange) -> None:
        exchange.reply(200, b"said")
        raise faults.Gone

    with console(lie=once, report_lie=once) as there:
        client = connection(there.url)
        for method, path in [("GET", SNAPSHOT), ("POST", "/api/v1/report")] * 3:
            assert client.request(method, path, body=b"{}").body == b"said"
            time.sleep(0.02)


@pytest.mark.parametrize(
    "lie",
    [
        faults.hangs,
        faults.dripping_headers,
        faults.dripping_body,
        faults.endless_interim,
    ],
)
def test_no_answer_takes_longer_than_it_may(lie):
    with console(lie=lie) as there:
        began = time.monotonic()
        with pytest.raises(RequestFailed):
            connection(there.url).request("GET", SNAPSHOT, seconds=0.5)
        assert time.monotonic() - began < 3


def test_what_nobody_reads_is_not_sent_for_longer_than_it_may_take():
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        client = connection(f"http://127.0.0.1:{deaf.getsockname()[1]}")
        began = time.monotonic()
        with pytest.raises(RequestFailed, match="in time"):
            client.request("POST", "/", body=b"x" * 50_000_000, seconds=0.5)
        assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("lie", "why"),
    [
        (faults.endless_body, "more than 100000 bytes"),
        (faults.endless_until_closed, "more than 100000 bytes"),
        (faults.negative_chunk, "too much"),
        (faults.endless_headers, "no HTTP|too much"),
        (faults.says_to_be_huge, "more than 100000 bytes"),
        (faults.compresses_unasked, "unexpected compressed"),
        (faults.damaged_gzip, "damaged"),
        (faults.cut_off_gzip, "incomplete"),
        (faults.appended_gzip, "damaged"),
        (faults.gzip_bomb, "more than 100000 bytes"),
        (faults.cut_off, "incomplete"),
        (faults.no_http, "not an HTTP response"),
        (faults.hangs_up, "closed by the server"),
    ],
)
def test_what_is_wrong_is_said_in_few_words(lie, why):
    with console(lie=lie) as there, pytest.raises(RequestFailed, match=why) as failed:
        connection(there.url).request("GET", SNAPSHOT, seconds=20, max_bytes=100_000)
    assert len(str(failed.value)) < 80


def test_a_redirect_is_an_answer_like_any_other():
    with console(lie=faults.redirects) as there:
        response = connection(there.url).request("GET", SNAPSHOT)
        assert response.status == 302
        with pytest.raises(RequestFailed, match="status 302"):
            response.expect(200)
        assert not there.requests_for("/elsewhere")


def test_when_to_come_back_is_handed_on():
    with console(lie=faults.come_back_later) as there:
        with pytest.raises(RequestFailed) as failed:
            connection(there.url).request("GET", SNAPSHOT).expect(200)
        assert (failed.value.status, failed.value.retry_after) == (503, "1")
        with pytest.raises(RequestFailed) as failed:
            connection(there.url).stream(STREAM)
        assert (failed.value.status, failed.value.retry_after) == (503, "1")


def test_headers_that_are_none_are_refused_without_quoting_them():
    with console() as there:
        client = connection(there.url, token="sg_test_secret\r\nX: y")
        with pytest.raises(RequestFailed) as failed:
            client.request("GET", SNAPSHOT)
        assert "secret" not in f"{failed.value!r} {failed.value.__cause__!r} {client!r}"
        assert not there.asked


@pytest.mark.parametrize("lie", [faults.hangs, faults.dripping_body])
def test_an_abort_ends_a_request_at_once(lie):
    with console(lie=lie) as there:
        client = connection(there.url)
        threading.Timer(0.3, client.abort).start()
        began = time.monotonic()
        with pytest.raises(RequestFailed, match="closed by this client"):
            client.request("GET", SNAPSHOT, seconds=30)
        assert time.monotonic() - began < 5
        with pytest.raises(RequestFailed, match="closed by this client"):
            client.request("GET", SNAPSHOT)


def test_a_stream_gives_what_is_there_and_ends_when_it_is_aborted():
    def says(exchange: Exchange) -> None:
        exchange.head(**faults.EVENTS)
        exchange.send(chunk(b"one"))
        exchange.rest(60)

    with console(stream_lie=says) as there:
        client = connection(there.url)
        with client.stream(STREAM) as stream:
            assert stream.read(5) == b"one"
            assert not stream.has_more()
            with pytest.raises(RequestFailed, match="in time"):
                stream.read(0.1)
        with client.stream(STREAM) as stream:
            assert stream.read(5) == b"one"
            threading.Timer(0.2, client.abort).start()
            began = time.monotonic()
            with pytest.raises(RequestFailed, match="closed by this client"):
                stream.read(30)
            assert time.monotonic() - began < 5


def test_addresses_are_taken_apart():
    address = Address.parse("https://there.example/base/")
    assert (address.host, address.port, address.base, address.authority) == (
        "there.example", 443, "/base", "there.example",
    )  # fmt: skip
    assert Address.parse("http://[::1]:8000").authority == "[::1]:8000"
    for wrong in ("ftp://x", "there", "", "http://", "http://x:99999"):
        with pytest.raises(ValueError, match=r"address|[Pp]ort"):
            Address.parse(wrong)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:1", "connection refused"),
        ("http://nowhere.invalid", "name can't be resolved"),
        ("https://127.0.0.1:{port}", "TLS error|connection closed|time"),
    ],
)
def test_who_can_not_be_reached_is_said(url, why):
    with console() as there, pytest.raises(RequestFailed, match=why):
        connection(url.format(port=there.port)).request("GET", SNAPSHOT, seconds=2)


def test_an_answer_in_crumbs_takes_little_of_the_processor():
    with console(lie=faults.crumbs) as there:
        client = connection(there.url)
        began = time.thread_time()
        # A fast processor comes to the end of what may be sent before it has had enough.
        with pytest.raises(RequestFailed, match=r"too slowly|too much"):
            client.request("GET", SNAPSHOT, seconds=60)
        assert time.thread_time() - began < 2


@pytest.mark.parametrize("ahead_seconds", [-7200, 0, 7200])
def test_date_in_retry_after_is_compared_with_the_date_of_the_same_answer(ahead_seconds):
    sent_at = time.time() + ahead_seconds

    def later(exchange: Exchange) -> None:
        date = email.utils.formatdate(sent_at, usegmt=True)
        exchange.reply(503, date=date, retry_after=email.utils.formatdate(sent_at + 7, usegmt=True))

    with console(lie=later) as there, pytest.raises(RequestFailed) as failed:
        connection(there.url).request("GET", SNAPSHOT).expect(200)

    assert failed.value.retry_after == "7"


@pytest.mark.parametrize("header", ["7", "soon", "Sun, 22 Nov 2026 02:00:30 GMT"])
def test_retry_after_of_an_answer_without_a_date_is_left_as_it_is(header):
    with (
        console(lie=lambda asked: asked.reply(503, retry_after=header), dates=False) as there,
        pytest.raises(RequestFailed) as failed,
    ):
        connection(there.url).request("GET", SNAPSHOT).expect(200)

    assert failed.value.retry_after == header


def test_a_compressed_answer_is_asked_for_and_unpacked():
    asked = []

    def packs(exchange: Exchange) -> None:
        asked.append(exchange.asked.headers["accept-encoding"])
        exchange.reply(200, gzip.compress(exchange.console.document), content_encoding="gzip")

    with console(lie=packs) as there:
        response = connection(there.url).request("GET", SNAPSHOT)

        assert asked == ["gzip"]
        assert response.body == there.document


def test_a_compressed_answer_may_be_as_large_as_one_that_is_not():
    body = bytes(100_000)

    def packs(exchange: Exchange) -> None:
        exchange.reply(200, gzip.compress(body), content_encoding="gzip")

    with console(lie=packs) as there:
        response = connection(there.url).request("GET", SNAPSHOT, max_bytes=len(body))

        assert response.body == body


def test_a_stream_is_asked_for_as_it_is():
    with console() as there:
        with connection(there.url).stream(STREAM):
            pass

        (asked,) = there.requests_for(STREAM)
        assert asked.headers["accept-encoding"] == "identity"
