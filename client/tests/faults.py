"""Wrong answers of a console, as caused by a network, a proxy or a bug."""

import functools
import gzip

from tests.fake_console import Exchange, Gone, chunk, document

JSON = {"content_type": "application/json"}
EVENTS = {"content_type": "text/event-stream", "transfer_encoding": "chunked"}


def errors(exchange: Exchange) -> None:
    exchange.reply(500, b"<h1>Server Error</h1>")


def come_back_later(exchange: Exchange) -> None:
    exchange.reply(503, retry_after="1")


def refuses(exchange: Exchange) -> None:
    exchange.reply(401)


def forbids(exchange: Exchange) -> None:
    exchange.reply(403)


def garbage(exchange: Exchange) -> None:
    exchange.reply(200, b'\x00\xff{"schema":', **JSON)


def another_page(exchange: Exchange) -> None:
    """Answer like a hotel's network."""
    exchange.reply(200, b"<html>Please sign in</html>", content_type="text/html")


def deep_json(exchange: Exchange) -> None:
    exchange.reply(200, b"[" * 100_000, **JSON)


def many_objects(exchange: Exchange) -> None:
    """Small on the wire, and large once it is built."""
    exchange.reply(200, b"[" + b"{}," * 2_000_000 + b"{}]", **JSON)


def many_numbers(exchange: Exchange) -> None:
    exchange.reply(200, b"[" + b"0.1," * 2_000_000 + b"0]", **JSON)


def crumbs(exchange: Exchange) -> None:
    """Send a chunk for each byte."""
    exchange.head(transfer_encoding="chunked", **JSON)
    while True:
        exchange.send(chunk(b"[") * 10_000)


def no_snapshot(exchange: Exchange) -> None:
    exchange.reply(200, b'{"schema":1,"epoch":"?","version":-1,"switches":{}}', **JSON)


def cut_off(exchange: Exchange) -> None:
    body = exchange.console.document
    exchange.head(content_length=str(len(body)), **JSON)
    exchange.send(body[: len(body) // 2])
    raise Gone


def older(exchange: Exchange) -> None:
    there = exchange.console
    exchange.reply(200, document(there.epoch, 0, {}), etag='"older"', **JSON)


def huge_version(exchange: Exchange) -> None:
    body = document(exchange.console.epoch, 10**30, {})
    exchange.reply(200, body, etag='"huge"', **JSON)


def endless_body(exchange: Exchange) -> None:
    exchange.head(transfer_encoding="chunked", **JSON)
    while True:
        exchange.send(chunk(b"[" * 65536))


def endless_until_closed(exchange: Exchange) -> None:
    exchange.head(**JSON)
    while True:
        exchange.send(b"[" * 65536)


def negative_chunk(exchange: Exchange) -> None:
    exchange.head(transfer_encoding="chunked", **JSON)
    exchange.send(b"-1\r\n")
    while True:
        exchange.send(b"[" * 65536)


def endless_headers(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        exchange.send(b"X: " + b"x" * 60_000 + b"\r\n")


def endless_interim(exchange: Exchange) -> None:
    while True:
        exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")


def says_to_be_huge(exchange: Exchange) -> None:
    exchange.head(content_length=str(2**60), **JSON)
    exchange.rest(60)


def dripping_headers(exchange: Exchange) -> None:
    for byte in b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 10_000:
        exchange.send(bytes([byte]))
        exchange.rest(0.05)


def dripping_body(exchange: Exchange) -> None:
    exchange.head(content_length="100000", **JSON)
    for _ in range(100_000):
        exchange.send(b"[")
        exchange.rest(0.05)


def hangs(exchange: Exchange) -> None:
    exchange.rest(60)


def hangs_up(exchange: Exchange) -> None:
    raise Gone


def redirects(exchange: Exchange) -> None:
    exchange.reply(302, location=f"{exchange.console.url}/elsewhere")


def compresses_unasked(exchange: Exchange) -> None:
    exchange.reply(200, b"\x1b" * 1000, content_encoding="br", **JSON)


def damaged_gzip(exchange: Exchange) -> None:
    exchange.reply(200, b"\x1f\x8b" + b"\x00" * 1000, content_encoding="gzip", **JSON)


def cut_off_gzip(exchange: Exchange) -> None:
    exchange.reply(200, gzip.compress(b"[]" * 1000)[:-9], content_encoding="gzip", **JSON)


def appended_gzip(exchange: Exchange) -> None:
    exchange.reply(
        200, gzip.compress(b"[]") + gzip.compress(b"[]"), content_encoding="gzip", **JSON
    )


@functools.cache
def _bomb() -> bytes:
    return gzip.compress(bytes(64 * 2**20), 9)


def gzip_bomb(exchange: Exchange) -> None:
    """64 MiB of zeros in 64 KiB."""
    exchange.reply(200, _bomb(), content_encoding="gzip", **JSON)


def unasked_304(exchange: Exchange) -> None:
    exchange.head(304)
    raise Gone


def no_http(exchange: Exchange) -> None:
    exchange.send(b"SSH-2.0-OpenSSH_9.9\r\n" * 3)
    raise Gone


def comments_without_end(exchange: Exchange) -> None:
    exchange.head(**EVENTS)
    while True:
        exchange.send(chunk(b": nothing new\n\n" * 4000))


def event_without_end(exchange: Exchange) -> None:
    exchange.head(**EVENTS)
    exchange.send(chunk(b"event: snapshot\ndata: "))
    while True:
        exchange.send(chunk(b"[" * 65536))


def event_of_many_lines(exchange: Exchange) -> None:
    exchange.head(**EVENTS)
    while True:
        exchange.send(chunk(b"data:\n" * 10_000))


def dripping_event(exchange: Exchange) -> None:
    exchange.head(**EVENTS)
    exchange.send(chunk(b"event: snapshot\ndata: "))
    while True:
        exchange.send(chunk(b"["))
        exchange.rest(0.02)


def storm(exchange: Exchange) -> None:
    """Versions without end, one after the other, as fast as it goes."""
    there = exchange.console
    exchange.head(**EVENTS)
    while True:
        with there.changed:
            there.version += 1
            body = there.document
        exchange.send(chunk(b"event: snapshot\ndata: " + body + b"\n\n"))


def two_at_once(exchange: Exchange) -> None:
    """Two versions, a moment after each other, and then nothing."""
    there = exchange.console
    exchange.head(**EVENTS)
    exchange.send(chunk(b"retry: 1000\n\n"))
    for _ in range(2):
        there.version += 1
        exchange.send(chunk(b"event: snapshot\ndata: " + there.document + b"\n\n"))
    exchange.rest(60)


def silent_stream(exchange: Exchange) -> None:
    """Buffer the stream like a proxy that waits for its end."""
    exchange.head(**EVENTS)
    exchange.rest(60)


def at_once(exchange: Exchange) -> None:
    """A poll is not held, whatever was asked."""
    there = exchange.console
    if exchange.asked.headers.get("if-none-match") == there.etag:
        exchange.head(304, etag=there.etag)
    else:
        exchange.reply(200, there.document, etag=there.etag, **JSON)


EVERYWHERE = [
    errors, come_back_later, refuses, forbids, garbage, another_page, deep_json, many_objects,
    many_numbers, crumbs, no_snapshot, cut_off, older, huge_version, endless_body,
    endless_until_closed, negative_chunk, endless_headers, endless_interim, says_to_be_huge,
    dripping_headers, dripping_body, hangs, hangs_up, redirects, no_http,
    compresses_unasked, damaged_gzip, cut_off_gzip, appended_gzip, gzip_bomb,
]  # fmt: skip
ON_STREAMS = [
    comments_without_end, event_without_end, event_of_many_lines, dripping_event, storm,
    silent_stream, errors, garbage, another_page, hangs, hangs_up, redirects,
]  # fmt: skip
