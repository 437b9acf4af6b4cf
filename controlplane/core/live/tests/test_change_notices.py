"""Notes as they go through Redis."""

import pytest

from controlplane.core.live import change_notices


def test_note_comes_out_as_it_went_in():
    (text,) = change_notices.encode_notices("switches", ["segment:b", "segment:a", "segment:b"])

    assert change_notices.decode_notice(text) == ("switches", ["segment:a", "segment:b"])


def test_many_ids_become_several_notes():
    texts = change_notices.encode_notices("breakers", map(str, range(450)))

    assert [len(change_notices.decode_notice(text)[1]) for text in texts] == [200, 200, 50]


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"7", b'{"topic":"x"}', b'{"topic":1,"ids":[]}', b'{"missed":true}']
)
def test_anything_else_is_no_note(text):
    assert change_notices.decode_notice(text) is None


def test_ids_that_are_no_text_are_left_out():
    assert change_notices.decode_notice(b'{"topic":"ramps","ids":["1",2,null]}') == ("ramps", ["1"])
