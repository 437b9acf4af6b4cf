"""The queue of a socket that reads too slowly."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from controlplane.live import stream
from controlplane.live.sockets import Mailbox


def emptied(mailbox: Mailbox) -> list[str]:
    return list(iter(mailbox.take_text, None))


def test_texts_come_in_their_order():
    mailbox = Mailbox()

    for each in "abc":
        mailbox.put("switches", each)

    assert emptied(mailbox) == ["a", "b", "c"]


def test_full_mailbox_keeps_what_it_has_and_says_once_that_the_rest_is_to_be_read_anew():
    mailbox = Mailbox(most=2)

    for each in "abcd":
        mailbox.put("switches", each)

    assert emptied(mailbox) == ["a", "b", stream.build_resync("switches")]


def test_room_does_not_let_a_topic_go_on_before_its_resync():
    mailbox = Mailbox(most=2)
    for each in "abc":
        mailbox.put("switches", each)
    mailbox.take_text()

    mailbox.put("switches", "d")
    mailbox.put("ramps", "e")

    assert emptied(mailbox) == ["b", "e", stream.build_resync("switches")]


def test_after_the_resync_the_topic_goes_on():
    mailbox = Mailbox(most=1)
    mailbox.put("switches", "a")
    mailbox.put("switches", "b")
    emptied(mailbox)

    mailbox.put("switches", "c")

    assert emptied(mailbox) == ["c"]


def test_new_stream_forgets_what_waits_and_what_was_left_out():
    mailbox = Mailbox(most=1)
    mailbox.put("switches", "a")
    mailbox.put("switches", "b")

    mailbox.restart("hello")

    assert emptied(mailbox) == ["hello"]


def test_word_without_a_number_is_dropped_where_there_is_no_room():
    mailbox = Mailbox(most=1)
    mailbox.put("switches", "a")

    mailbox.put_unnumbered("heartbeat")

    assert emptied(mailbox) == ["a"]


@given(
    st.lists(st.sampled_from(["switches", "ramps", "take"]), max_size=60),
    st.integers(min_value=1, max_value=4),
)
def test_whatever_happens_a_reader_that_heeds_resync_never_misses_a_change(steps, most):
    """An independent reader: it follows the numbers, and on a resync it reads the truth."""
    mailbox, truth, read = Mailbox(most), {"switches": 0, "ramps": 0}, {"switches": 0, "ramps": 0}

    def take() -> bool:
        text = mailbox.take_text()
        if text is None:
            return False
        body = orjson.loads(text)
        topic = body["topic"]
        if body.get("event") == "resync":
            read[topic] = truth[topic]
        else:
            assert body["seq"] == read[topic] + 1, "a gap, or a step back"
            read[topic] = body["seq"]
        return True

    for step in steps:
        if step == "take":
            take()
        else:
            truth[step] += 1
            mailbox.put(step, orjson.dumps({"topic": step, "seq": truth[step]}).decode())
    while take():
        pass

    assert read == truth
