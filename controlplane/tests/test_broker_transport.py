"""Junk in the broker's lists: dropped with a warning, and the message behind it is delivered."""

import json
import threading
import time

import pytest
import redis
from django.conf import settings
from kombu import Connection, Consumer, Queue
from kombu.asynchronous import Hub, set_event_loop

from controlplane.broker_transport import LenientTransport

WELL_FORMED = {
    "body": "e30=",
    "content-type": "application/json",
    "content-encoding": "utf-8",
    "headers": {},
    "properties": {
        "delivery_tag": "1",
        "delivery_info": {"exchange": "", "routing_key": "junk"},
        "body_encoding": "base64",
    },
}
JUNK = [
    b"junk",
    b"\xff\xfe",
    b"[]",
    b"null",
    b"{}",
    b"[" * 100_000,
    b'{"__type__": "decimal", "__value__": "x"}',
    b'{"__type__": "uuid", "__value__": 1}',
    b'{"__type__": "bytes", "__value__": 1}',
    b'{"__type__": ["uuid"], "__value__": 1}',
    json.dumps({**WELL_FORMED, "properties": {}}).encode(),
    json.dumps({**WELL_FORMED, "properties": "x"}).encode(),
    json.dumps({**WELL_FORMED, "body": 3}).encode(),
    json.dumps(
        {**WELL_FORMED, "properties": {**WELL_FORMED["properties"], "body_encoding": "zip"}}
    ).encode(),
]


@pytest.mark.parametrize("junk", JUNK)
def test_junk_is_dropped_and_the_next_message_arrives(junk):
    name = f"junk-{threading.get_ident()}-{time.monotonic_ns()}"
    client = redis.Redis.from_url(settings.REDIS_URL)
    client.lpush(name, junk)
    client.lpush(name, json.dumps(WELL_FORMED))
    received = []

    hub = Hub()
    set_event_loop(hub)
    try:
        with Connection(settings.REDIS_URL, transport=LenientTransport) as connection:
            connection.transport.register_with_event_loop(connection.connection, hub)
            consumer = Consumer(connection, [Queue(name)], accept=["json"], no_ack=True)
            consumer.register_callback(lambda body, _message: received.append(body))
            with consumer:
                ends = time.monotonic() + 10
                while not received and time.monotonic() < ends:
                    hub.run_once()
    finally:
        set_event_loop(None)
        client.delete(name)
        client.close()

    assert received == [{}]


def test_a_connection_closes_without_waiting_for_a_message():
    name = f"idle-{time.monotonic_ns()}"
    hub = Hub()
    set_event_loop(hub)
    try:
        connection = Connection(
            settings.REDIS_URL,
            transport=LenientTransport,
            transport_options={"polling_interval": 4},
        )
        connection.transport.register_with_event_loop(connection.connection, hub)
        consumer = Consumer(connection, [Queue(name)], accept=["json"], no_ack=True)
        consumer.register_callback(lambda _body, _message: None)
        consumer.consume()
        hub.run_once()
        assert consumer.channel._in_poll

        began = time.monotonic()
        connection.close()
    finally:
        set_event_loop(None)

    assert time.monotonic() - began < 1
