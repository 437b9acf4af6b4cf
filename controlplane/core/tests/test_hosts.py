"""Names in a request's `Host` header are allowed as Django decides it."""

import pytest
from django.http.request import split_domain_port, validate_host

from controlplane.core.errors import DomainError
from controlplane.core.hosts import AllowedHosts

PATTERNS = ["switchgear.example", ".below.example", "127.0.0.1", "[::1]"]
HOSTS = [
    "switchgear.example",
    "Switchgear.Example:8000",
    "switchgear.example.",
    "a.switchgear.example",
    "switchgear.example.evil.example",
    "evil.example",
    "below.example",
    "a.b.below.example:443",
    "notbelow.example",
    "127.0.0.1:8001",
    "127.0.0.2",
    "[::1]:8000",
    "[::2]",
    "",
    "a b",
    "switchgear.example/",
    "switchgear.example:x",
    "user@switchgear.example",
    "switchgear.example, evil.example",
    "\xff",
]


def is_allowed(hosts: AllowedHosts, host: str) -> bool:
    try:
        hosts.require({b"host": host.encode("latin-1")})
    except DomainError:
        return False
    return True


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("patterns", [PATTERNS, ["switchgear.example"]])
def test_a_host_is_allowed_where_django_allows_it(patterns: list[str], host: str) -> None:
    hosts = AllowedHosts(patterns)
    domain, _ = split_domain_port(host)
    expected = bool(domain) and validate_host(domain, patterns)

    assert is_allowed(hosts, host) == expected
    assert is_allowed(hosts, host) == expected  # Also once it is remembered.


def test_any_host_is_allowed_by_an_asterisk() -> None:
    assert is_allowed(AllowedHosts(["*"]), "evil.example")


def test_a_request_without_a_host_is_not_refused() -> None:
    AllowedHosts(["switchgear.example"]).require({})


def test_a_refused_host_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    hosts = AllowedHosts(["switchgear.example"])

    for _ in range(3):
        assert not is_allowed(hosts, "evil.example")

    assert caplog.text.count("host.refused") == 1
