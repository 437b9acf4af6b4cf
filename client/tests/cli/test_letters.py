"""Dead letters from a shell, against a real console and a real Redis."""

import pytest

from switchgear.cli import exits

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(180)]
WHY = ("--reason", "Oracle answers again since 14:20")


@pytest.fixture
def letters(stream):
    """Three dead letters, of which two failed alike; their ids."""
    errors = ("timeout after 31 ms", "timeout after 77 ms", "값이 잘못되었습니다")
    return [
        stream.redis.xadd(
            stream.dead,
            {"order": str(n), "password": "hunter2", "dlq_error": error,
             "dlq_error_type": "TimeoutError" if n < 2 else "ValueError", "dlq_attempts": "3"},
        ).decode()
        for n, error in enumerate(errors)
    ]  # fmt: skip


def test_letters_are_shown_one_by_one_and_in_groups_without_secrets(shell, stream, letters):
    listed = shell("dlq", "show", stream.dead)
    groups = shell("dlq", "groups", stream.dead, "--json").json
    one = shell("dlq", "show", stream.dead, letters[0])

    assert listed.code == 0
    assert all(each in listed.out for each in letters)
    assert "값이 잘못되었습니다" in listed.out
    assert [group["count"] for group in groups["results"]] == [2, 1]
    assert "[redacted]" in one.out
    assert "hunter2" not in one.out


def test_letter_is_retried_with_an_edit_and_another_discarded_and_restored(shell, stream, letters):
    retried = shell("dlq", "retry", stream.dead, letters[0], *WHY, "--edit", "order=77", "--json")
    discarded = shell("dlq", "discard", stream.dead, letters[1], *WHY, "--json")
    restored = shell("dlq", "restore", str(discarded.json["departure"]), *WHY)

    [(_, fields)] = stream.redis.xrange(stream.name)
    assert (retried.code, discarded.code, restored.code) == (0, 0, 0)
    assert fields[b"order"] == b"77"
    assert stream.redis.xlen(stream.dead) == 2
    assert "Restored" in restored.out


def test_first_letter_that_fails_ends_it_and_those_before_are_told(shell, stream, letters):
    result = shell("dlq", "discard", stream.dead, letters[0], "1-1", letters[1], *WHY, "--json")

    assert result.code == exits.NOT_FOUND
    assert [one["id"] for one in result.json] == [letters[0]]
    assert stream.redis.xlen(stream.dead) == 2


def test_dry_run_of_many_counts_and_touches_nothing(shell, stream, letters):
    result = shell("dlq", "retry", stream.dead, "--error-type", "TimeoutError", *WHY, "--dry-run")

    assert result.code == 0
    assert "2 letters" in result.out
    assert stream.redis.xlen(stream.dead) == 3


def test_many_are_a_job_that_can_be_paused_and_cancelled(shell, stream, letters):
    begun = shell("dlq", "retry", stream.dead, "--all", *WHY, "--json")
    number = str(begun.json["id"])
    listed = shell("dlq", "job", "--json")
    paused = shell("dlq", "job", "pause", number)
    cancelled = shell("dlq", "job", "cancel", number)

    assert [one.code for one in (begun, listed, paused, cancelled)] == [0, 0, 0, 0]
    assert [one["id"] for one in listed.json] == [begun.json["id"]]
    assert "paused" in paused.out
    assert "cancelled" in cancelled.out


def test_purge_waits_for_a_second_person(shell, stream, letters):
    result = shell("dlq", "purge", stream.dead, "--all", *WHY)

    assert result.code == exits.NEEDS_APPROVAL
    assert "second person" in result.out
    assert stream.redis.xlen(stream.dead) == 3


def test_stream_that_is_not_there_ends_with_3(shell):
    assert shell("dlq", "show", "axiom:dlq:nowhere").code == exits.NOT_FOUND
    assert shell("dlq", "job", "show", "4711").code == exits.NOT_FOUND
