"""Grants of the emergency page: signed, short-lived, bound to the code that was checked."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.dataplane.emergency.page.grants import VALID, make_grant, read_grant
from controlplane.dataplane.memory.credentials import CodeHash
from switches.emergency.orders import Orderer

NOW = datetime(2026, 11, 28, 17, 10, tzinfo=UTC)
KEY, OLD_KEY, OTHER_KEY = b"k" * 32, b"o" * 32, b"x" * 32
KIM = Orderer("user", "kim", 7)
CODES = {"kim": CodeHash(7, b"salt", b"digest"), "김": CodeHash(8, b"salt", b"digest")}


def grant_text(by: Orderer = KIM, key: bytes = KEY) -> str:
    grant = make_grant(key, CODES, by, NOW)
    assert grant is not None
    return grant.text


@pytest.mark.parametrize("by", [KIM, Orderer("user", "김", 8)])
def test_grant_stands_for_the_person_for_ten_minutes(by: Orderer) -> None:
    text = grant_text(by)

    read = read_grant((KEY,), CODES, text, NOW + VALID - timedelta(seconds=1))

    assert read is not None
    assert (read.by, read.ends) == (by, NOW + VALID)
    assert read_grant((KEY,), CODES, text, NOW + VALID) is None


def test_grant_by_a_replaced_key_is_still_read() -> None:
    text = grant_text(key=OLD_KEY)

    assert read_grant((KEY, OLD_KEY), CODES, text, NOW) is not None
    assert read_grant((KEY, OTHER_KEY), CODES, text, NOW) is None


def test_grant_ends_with_its_code() -> None:
    text = grant_text()

    assert read_grant((KEY,), {}, text, NOW) is None
    replaced = {"kim": CodeHash(7, b"salt", b"another digest")}
    assert read_grant((KEY,), replaced, text, NOW) is None
    assert make_grant(KEY, {}, KIM, NOW) is None
    assert make_grant(KEY, CODES, Orderer("user", "kim", 9), NOW) is None


def test_changed_grant_is_none() -> None:
    ends, name, signature = grant_text().split(".")
    other_name = grant_text(Orderer("user", "김", 8)).split(".")[1]

    for text in (
        "",
        "...",
        "kim",
        f"{int(ends) + 60}.{name}.{signature}",
        f"{ends}.{other_name}.{signature}",
        f"{ends}.{name}.",
        f"{ends}.{name}.{signature[:-1]}",
        f"{ends}.{name}.é",
        f"{ends}.%%%.{signature}",
        f"{ends}.gICA.{signature}",
        f"{'9' * 5000}.{name}.{signature}",
    ):
        assert read_grant((KEY,), CODES, text, NOW) is None, text


def test_grant_that_would_last_longer_is_none() -> None:
    """A key that leaked once must not make grants that last."""
    grant = make_grant(KEY, CODES, KIM, NOW + timedelta(days=1))

    assert grant is not None
    assert read_grant((KEY,), CODES, grant.text, NOW) is None
