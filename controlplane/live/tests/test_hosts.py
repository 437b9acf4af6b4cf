"""Names in a handshake's `Host` header are allowed as `ALLOWED_HOSTS` says."""

from typing import Any

import pytest

from controlplane.core.errors import DomainError
from controlplane.live.hosts import require_allowed_host

PATTERNS = ["switchgear.example", ".below.example", "127.0.0.1", "[::1]"]


def is_allowed(host: str) -> bool:
    try:
        require_allowed_host({b"host": host.encode("latin-1")})
    except DomainError:
        return False
    return True


@pytest.mark.parametrize(
    ("host", "allowed", "allowed_by_the_first_pattern"),
    [
        ("switchgear.example", True, True),
        ("Switchgear.Example:8000", True, True),
        ("switchgear.example.", True, True),
        ("a.switchgear.example", False, False),
        ("switchgear.example.evil.example", False, False),
        ("evil.example", False, False),
        ("below.example", True, False),
        ("a.b.below.example:443", True, False),
        ("notbelow.example", False, False),
        ("127.0.0.1:8001", True, False),
        ("127.0.0.2", False, False),
        ("[::1]:8000", True, False),
        ("[::2]", False, False),
        ("", False, False),
        ("a b", False, False),
        ("switchgear.example/", False, False),
        ("switchgear.example:x", False, False),
        ("user@switchgear.example", False, False),
        ("switchgear.example, evil.example", False, False),
        ("\xff", False, False),
    ],
)
def test_a_host_is_allowed_by_its_pattern(
    host: str, allowed: bool, allowed_by_the_first_pattern: bool, settings: Any
) -> None:
    settings.ALLOWED_HOSTS = PATTERNS
    assert is_allowed(host) == allowed

    settings.ALLOWED_HOSTS = PATTERNS[:1]
    assert is_allowed(host) == allowed_by_the_first_pattern


def test_any_host_is_allowed_by_an_asterisk(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]

    assert is_allowed("evil.example")


def test_a_request_without_a_host_is_not_refused() -> None:
    require_allowed_host({})


def test_a_refused_host_is_logged(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings.ALLOWED_HOSTS = PATTERNS

    assert not is_allowed("evil.example")

    assert caplog.text.count("host.refused") == 1
