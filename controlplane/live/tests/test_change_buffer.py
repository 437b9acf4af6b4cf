"""Bursts become one reading of each resource."""

from controlplane.live.topic_publisher import ChangeBuffer


def test_resource_that_is_noted_often_is_read_once():
    gathering = ChangeBuffer()

    gathering.note(["a", "b"])
    gathering.note(["a", "c", "a"])

    assert gathering.pop_batch() == ["a", "b", "c"]
    assert len(gathering) == 0


def test_many_are_taken_in_turns_the_first_first():
    gathering = ChangeBuffer(batch_size=2)

    gathering.note("abcde")

    assert [gathering.pop_batch() for _ in range(3)] == [["a", "b"], ["c", "d"], ["e"]]


def test_too_many_are_forgotten_and_that_is_known():
    gathering = ChangeBuffer(most=3)

    gathering.note("abcd")

    assert gathering.pop_batch() == []
    assert gathering.overflowed


def test_clear_begins_anew():
    gathering = ChangeBuffer(most=3)
    gathering.note("abcd")

    gathering.clear()
    gathering.note("a")

    assert not gathering.overflowed
    assert gathering.pop_batch() == ["a"]
