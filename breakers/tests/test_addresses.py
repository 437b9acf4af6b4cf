"""Tests of the validation of probe URLs."""

import pytest

from breakers.policies.addresses import ProbeTarget, find_probe_problem, parse_target


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("tcp://redis:6379", ProbeTarget("tcp", "redis", 6379)),
        ("tcp://[::1]:5432/", ProbeTarget("tcp", "::1", 5432)),
        ("http://10.0.0.7/up", ProbeTarget("http", "10.0.0.7", 80, "/up")),
        (
            "https://API.example.com:8443?x=1",
            ProbeTarget("https", "api.example.com", 8443, "/?x=1"),
        ),
        ("https://xn--bcher-kva.example/", ProbeTarget("https", "xn--bcher-kva.example", 443, "/")),
    ],
)
def test_address_is_taken_apart(url, asked):
    assert find_probe_problem(url) == ""
    assert parse_target(url) == asked


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("https://bücher.example/", "xn--"),
        ("https://api.example.com/#part", "#"),
        ("tcp://redis:6379#", "#"),
        ("https://u:p@x/", "user"),
        ("https://:@x/", "user"),
        ("tcp://redis", "port"),
        ("tcp://redis:6379/0", "without a path"),
        ("tcp://redis:0", "Must be"),
        ("https://", "Must be"),
        ("https://a..b/", "Must be"),
        (f"https://{'a' * 64}.example/", "Must be"),
        ("https://ho st/", "Must be"),
        ("https://x:99999/", "Must be"),
        ("file:///etc/passwd", "Must be"),
        ("https://x/" + "y" * 500, "500"),
    ],
)
def test_what_can_not_be_asked_is_not_registered(url, message):
    assert message in find_probe_problem(url)
