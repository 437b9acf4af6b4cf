"""Errors of other libraries are recognized by their names and attributes."""

import concurrent.futures
import http.client
import json
import socket
import urllib.error

import httpx
import psycopg
import pytest
import redis
import requests
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from switchgear.failures.error_labels import (
    describe_error,
    error_labels,
    http_status,
    is_connection_error,
    is_timeout,
    response_header,
    retry_after_header,
)

REQUEST = httpx.Request("GET", "http://a/")


def httpx_status(status, headers=None):
    response = httpx.Response(status, headers=headers, request=REQUEST)
    return httpx.HTTPStatusError("bad", request=REQUEST, response=response)


def requests_status(status):
    response = requests.Response()
    response.status_code = status
    return requests.HTTPError(response=response)


class APIStatusError(Exception):
    """An error like those of openai and anthropic."""

    def __init__(self, status, body, text="refused"):
        super().__init__(text)
        self.status_code = status
        self.body = body
        self.code = body.get("code") if isinstance(body, dict) else None
        self.type = body.get("type") if isinstance(body, dict) else None
        self.response = httpx.Response(status, request=REQUEST)


class RateLimitError(APIStatusError): ...


class APIConnectionError(Exception): ...


class APITimeoutError(APIConnectionError): ...


class _Code:
    def __init__(self, name):
        self.name = name


class RpcError(Exception):
    """An error like grpc's, whose code is a method."""

    def __init__(self, name):
        self._name = name

    def code(self):
        return _Code(self._name)


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        concurrent.futures.TimeoutError(),
        httpx.ReadTimeout("late"),
        httpx.ConnectTimeout("late"),
        httpx.PoolTimeout("late"),
        requests.ReadTimeout(),
        urllib3.exceptions.ReadTimeoutError(None, "/", "late"),
        urllib3.exceptions.MaxRetryError(None, "/", urllib3.exceptions.ConnectTimeoutError()),
        urllib.error.URLError(TimeoutError()),
        redis.TimeoutError(),
        psycopg.errors.ConnectionTimeout(),
        APITimeoutError(),
        RpcError("DEADLINE_EXCEEDED"),
    ],
    ids=lambda error: f"{type(error).__module__}.{type(error).__name__}",
)
def test_a_timeout_is_known(error):
    assert is_timeout(error)
    assert "timeout" in error_labels(error)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(),
        BrokenPipeError(),
        http.client.RemoteDisconnected(),
        socket.gaierror(),
        httpx.ConnectError("no"),
        httpx.ReadError("no"),
        httpx.RemoteProtocolError("no"),
        requests.ConnectionError(),
        urllib3.exceptions.NewConnectionError(None, "no"),
        urllib3.exceptions.ProtocolError(),
        urllib.error.URLError(ConnectionRefusedError()),
        redis.ConnectionError(),
        psycopg.OperationalError(),
        psycopg.errors.AdminShutdown(),
        APIConnectionError(),
        RpcError("UNAVAILABLE"),
    ],
    ids=lambda error: f"{type(error).__module__}.{type(error).__name__}",
)
def test_a_lost_connection_is_known(error):
    assert is_connection_error(error)
    assert "connection_error" in error_labels(error)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("timeout"),
        httpx.InvalidURL("no"),
        redis.ResponseError(),
        psycopg.errors.UniqueViolation(),
        psycopg.errors.DiskFull(),
        httpx_status(404),
        RpcError("NOT_FOUND"),
    ],
    ids=lambda error: f"{type(error).__module__}.{type(error).__name__}",
)
def test_other_errors_are_neither_timeout_nor_connection_error(error):
    assert not is_timeout(error)
    assert not is_connection_error(error)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (httpx_status(503), 503),
        (requests_status(429), 429),
        (urllib.error.HTTPError("http://a/", 502, "", {}, None), 502),
        (APIStatusError(401, None), 401),
        (httpx.Response(504), 504),
        (RpcError("RESOURCE_EXHAUSTED"), 429),
        (ValueError(), None),
        (OSError(104, "reset"), None),
    ],
)
def test_the_status_is_found(error, status):
    assert http_status(error) == status
    assert status is None or status in error_labels(error)


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (APIStatusError(400, {"code": "context_length_exceeded"}), "context_length_exceeded"),
        (
            APIStatusError(400, {"error": {"type": "invalid_request_error"}}, "prompt is too long"),
            "context_length_exceeded",
        ),
        (APIStatusError(529, {"error": {"type": "overloaded_error"}}), "model_overloaded"),
        (APIStatusError(429, {"error": {"type": "rate_limit_error"}}), "rate_limit_exceeded"),
        (RateLimitError(429, None), "rate_limit_exceeded"),
        (APIStatusError(429, {"code": "insufficient_quota"}), "insufficient_quota"),
        (APIStatusError(400, {"code": "content_filter"}), "content_policy_violation"),
        (APIStatusError(401, {"error": {"type": "authentication_error"}}), "invalid_api_key"),
        (psycopg.errors.UniqueViolation(), "23505"),
        (json.JSONDecodeError("no", "", 0), "ValueError"),
    ],
)
def test_codes_and_classes_are_words(error, word):
    assert word in error_labels(error)


class Hostile(Exception):
    """An object whose attributes can't be read."""

    def __getattribute__(self, name):
        if name == "__class__":
            return Hostile
        raise RuntimeError(name)

    def __str__(self):
        raise RuntimeError


@given(
    st.one_of(
        st.builds(Hostile),
        st.none(),
        st.integers(),
        st.text(),
        st.dictionaries(st.text(), st.text()),
    )
)
def test_hostile_objects_raise_nothing(thing):
    assert isinstance(error_labels(thing), frozenset)
    assert retry_after_header(thing) is None
    assert http_status(thing) is None
    assert not is_timeout(thing)


@given(st.one_of(st.none(), st.booleans(), st.floats(), st.text(), st.lists(st.integers())))
def test_attributes_of_any_kind_do_no_harm(value):
    error = Exception()
    for name in ("response", "headers", "code", "type", "body", "status", "sqlstate", "reason"):
        setattr(error, name, value)
    assert all(isinstance(word, str | int) for word in error_labels(error))
    retry_after_header(error)


def test_retry_after_is_found_wherever_it_is():
    plain = Exception()
    plain.retry_after = 12
    millis = httpx_status(429, {"retry-after-ms": "1500", "Retry-After": "2"})
    by_mapping = Exception()
    by_mapping.headers = {"Retry-After": "9"}

    assert retry_after_header(httpx_status(429, {"Retry-After": "7"})) == "7"
    assert retry_after_header(httpx.Response(429, headers={"retry-after": "8"})) == "8"
    assert retry_after_header(by_mapping) == "9"
    assert retry_after_header(plain) == "12"
    assert retry_after_header(millis) == "1.5"
    assert response_header(httpx_status(429, {"Date": "now"}), "date") == "now"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (5.0, "5"),
        (0.25, "0.250"),
        (1e-7, "0"),
        (1e16, "999999999"),
        (10**400, "999999999"),
        (float("inf"), "999999999"),
        (float("nan"), None),
        (-5, None),
    ],
)
def test_numeric_retry_after_is_formatted_like_a_header(given, said):
    error = Exception()
    error.retry_after = given
    assert retry_after_header(error) == said


def test_description_of_an_error_is_short():
    assert describe_error(ValueError("no")) == "ValueError: no"
    assert describe_error(KeyError()) == "KeyError"
    assert len(describe_error(ValueError("x" * 5000))) == 200
