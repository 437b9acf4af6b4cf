"""Patterns of marks: they match exactly, and match no similar names."""

import pytest

from controlplane.core.errors import InvalidInput
from switches.drills.patterns import Marks, read_pattern

MARKED = Marks.from_patterns(["core/canary-1", "chat/*", "결제/서버-1"])


@pytest.mark.parametrize(
    "name", ["core/canary-1", "chat/a", "chat/canary-1", "chat/*", "결제/서버-1"]
)
def test_marked_names_match(name):
    assert MARKED.match(name)


@pytest.mark.parametrize(
    "name",
    [
        "core/canary-10",
        "core/canary-",
        "core/Canary-1",
        "core/canary-1 ",
        " core/canary-1",
        "xcore/canary-1",
        "core/*",
        "chat",
        "chat/",
        "chat/a/b",
        "chat2/a",
        "Chat/a",
        "token:chat/a",
        "/canary-1",
        "",
    ],
)
def test_near_misses_do_not(name):
    assert not MARKED.match(name)


@pytest.mark.parametrize(
    "text", ["core/canary-1", " core/* ", "결제/*", "a" * 120 + "/" + "b" * 120]
)
def test_patterns_are_read_as_written(text):
    assert read_pattern(text) == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "core",
        "core/",
        "/a",
        "*",
        "*/*",
        "*/a",
        "co*/a",
        "core/can*",
        "core/**",
        "core/a/b",
        "core /a",
        "core/a b",
        "token:x/a",
        "core/\x00",
        "core/\ufffd",
        "a" * 121 + "/b",
    ],
)
def test_what_could_never_match_or_too_much_is_refused(text):
    with pytest.raises(InvalidInput):
        read_pattern(text)


def test_no_marks_are_none():
    assert not Marks.from_patterns([])
