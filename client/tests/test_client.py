"""Arguments and status of a client."""

import tempfile
from datetime import timedelta

import pytest

from switchgear import Switchgear
from switchgear.testing import Console, FakeClock
from tests.fake_console import TOKEN, console


class Broken:
    """An object that raises an error at every attribute access."""

    def _fail(self, *_):
        raise ArithmeticError

    __str__ = __repr__ = __hash__ = __eq__ = __iter__ = __bool__ = _fail


@pytest.mark.parametrize("name", ["segment", "feature", "experiments", "targeting_key"])
def test_an_object_that_only_fails_is_answered_all_the_same(name):
    there = Console()
    there.ramp("feature:chat", 50)
    gear = there.client()
    for words in ({name: Broken()}, {"feature": "chat", name: Broken()}):
        assert gear.allowed(**words) in (True, False)
        assert gear.check(**words).allowed in (True, False)


def nowhere(monkeypatch):
    """Pretend that the machine has no folder to write to."""
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nonexistent"])
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_without_a_folder_to_write_to_a_client_begins(monkeypatch, caplog):
    nowhere(monkeypatch)
    with Switchgear("http://127.0.0.1:9", TOKEN) as gear:
        assert gear.allowed(feature="chat")
    assert len([one for one in caplog.records if "folder" in one.getMessage()]) == 1


def test_client_without_a_console_asks_for_no_folder(monkeypatch, caplog):
    nowhere(monkeypatch)
    assert Switchgear(None).allowed(feature="chat")
    assert not caplog.records


def test_engagement_that_has_ended_by_itself_does_not_count_as_stopped():
    clock = FakeClock()
    there = Console(clock)
    there.engage("feature:chat", expires_in=timedelta(minutes=1), on_expiry="release")
    there.engage("feature:search", expires_in=timedelta(minutes=1), on_expiry="hold")
    gear = there.client()
    assert gear.status().stopped == 2

    clock.advance(66)

    assert gear.status().stopped == 1


def test_that_the_token_can_be_overheard_is_said_once(caplog):
    gear = Switchgear("http://switchgear.invalid", TOKEN, state_dir=None)
    gear._settings.for_child()
    gear.close(0)

    assert len([one for one in caplog.records if "unencrypted" in one.getMessage()]) == 1


def test_offline_client_needs_no_token_and_asks_nothing(tmp_path):
    with console() as there:
        gear = Switchgear(there.url, offline=True, state_dir=tmp_path, force_engaged=["global"])
        assert not gear.wait_ready(0.1)
        assert gear.status().way == "offline"
        assert not gear.allowed(feature="chat")
        gear.close()

    assert there.asked == []
