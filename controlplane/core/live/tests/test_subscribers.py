"""Credentials and page origin of a socket's client."""

import pytest

from controlplane.core.live.subscribers import carries_token, is_own_page


def opened_by(origin: str | None, host: str = "console.example:8000") -> dict[bytes, bytes]:
    headers = {b"host": host.encode()}
    return headers if origin is None else {**headers, b"origin": origin.encode()}


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://console.example:8000", "console.example:8000"),
        ("https://console.example", "console.example"),
        ("https://console.example", "console.example:443"),
        ("http://[::1]:8000", "[::1]:8000"),
    ],
)
def test_page_of_the_host_that_was_asked_is_ours(origin, host):
    assert is_own_page(opened_by(origin, host), (), https_only=False)


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "",
        "null",
        "http://evil.example",
        "http://console.example",  # Another port is another origin, though cookies know no ports.
        "http://console.example:8001",
        "https://console.example:8000.evil.example",
        "http://user@evil.example:8000",
        "ftp://console.example:8000",
        "http://console.example:99999",
        "http://[",
    ],
)
def test_any_other_page_is_not(origin):
    assert not is_own_page(opened_by(origin), (), https_only=False)


def test_plain_http_is_not_trusted_where_https_is_asked_for():
    assert not is_own_page(opened_by("http://console.example:8000"), (), https_only=True)


@pytest.mark.parametrize(
    ("origin", "ours"),
    [
        ("https://proxy.example", True),
        ("https://a.below.example", True),
        ("https://below.example.evil", False),
        ("https://evil-below.example", False),
        ("http://proxy.example", False),
    ],
)
def test_trusted_origins_are_ours_behind_a_proxy_that_changes_the_host(origin, ours):
    trusted = ["https://proxy.example", "https://*.below.example"]

    assert is_own_page(opened_by(origin, "10.0.0.7:8000"), trusted, https_only=True) is ours


@pytest.mark.parametrize(
    ("headers", "carries"),
    [
        ({b"authorization": b"Bearer sg_a_b"}, True),
        ({b"authorization": b"bearer x"}, True),
        ({b"x-api-key": b""}, True),
        ({b"authorization": b"Basic abc"}, False),
        ({b"authorization": b"Bearer "}, False),
        ({b"cookie": b"sessionid=abc"}, False),
    ],
)
def test_token_is_known_by_its_header(headers, carries):
    assert carries_token(headers) is carries
