"""Fingerprints of alike errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakers.dead_letters.letters import fingerprints
from breakers.dead_letters.tests.heaps import compute_fingerprint


@pytest.mark.parametrize(
    ("error", "pattern"),
    [
        ("", ""),
        ("timeout after 30 s", "timeout after <n> s"),
        ("took -1.5e3 ms, 12,000 rows", "took <n> ms, <n> rows"),
        ("order 3f2b8c1e-1d2f-4a5b-9c8d-7e6f5a4b3c2d is gone", "order <id> is gone"),
        ("no key 'user:17' in \"a b\"", "no key <text> in <text>"),
        ("can't read the user's order", "can't read the user's order"),
        ("10.0.0.7:5432 refused", "<address> refused"),
        ("mail to a.b@example.org bounced", "mail to <address> bounced"),
        ("at 2026-11-21T02:11:00.5Z it broke", "at <time> it broke"),
        ("entry 1700000000000-0 at 0xdeadbeef", "entry <id> at <id>"),
        ("object 507f1f77bcf86cd799439011\n  is locked", "object <id> is locked"),
    ],
)
def test_what_varies_is_taken_out(error, pattern):
    assert compute_fingerprint("Broken", error).pattern == pattern


def test_errors_that_differ_in_numbers_are_alike():
    fingerprint = compute_fingerprint("Timeout", "order 17 took 30.5 s")
    other = compute_fingerprint("Timeout", "order 18 took 3 s")

    assert fingerprint == other


def test_errors_of_different_types_are_not_alike():
    assert (
        compute_fingerprint("Timeout", "gone").digest
        != compute_fingerprint("Missing", "gone").digest
    )


@given(st.text(min_size=fingerprints.MAX_ERROR_LENGTH + 1), st.text())
def test_what_comes_behind_the_beginning_of_an_error_changes_nothing(error, more):
    assert compute_fingerprint("Broken", error) == compute_fingerprint("Broken", error + more)


@given(st.text(), st.text())
def test_any_text_has_a_fingerprint_that_fits(error_type, error):
    fingerprint = compute_fingerprint(error_type, error)

    assert len(fingerprint.digest) == 16
    assert len(fingerprint.pattern) <= fingerprints.MAX_ERROR_LENGTH


def test_a_quotation_that_is_cut_is_a_quotation():
    short, long = (f'refused: "{"payload " * times}"' for times in (80, 90))

    assert compute_fingerprint("", short) == compute_fingerprint("", long)
