"""Settings from arguments and from the environment."""

import logging
import os
import tempfile
from enum import Enum
from pathlib import Path

import pytest

from switchgear import Switchgear
from switchgear.settings import (
    Settings,
    default_state_dir,
    is_name,
    own_instance,
    read_forced,
    read_public_keys,
)

TOKEN = "sg_test_secret"


class Feature(str, Enum):  # noqa: UP042
    CHAT = "feature:chat"


@pytest.mark.parametrize(
    "words",
    [
        "segment:finance,feature:chat",
        "segment:finance;feature:chat",
        " segment:finance \n feature:chat ,",
        "\"segment:finance\" 'feature:chat'",
        '"segment:finance,feature:chat"',
        ["segment:finance", " feature:chat "],
        {"segment:finance", Feature.CHAT},
    ],
)
def test_forced_switches_are_read_however_they_are_written(words) -> None:
    assert read_forced(words)[0] == {"segment:finance", "feature:chat"}


def test_global_alone_means_everything() -> None:
    assert read_forced("global") == read_forced("global:all") == ({"global:all"}, [])


def test_what_is_no_switch_is_named_and_the_rest_is_forced() -> None:
    forced, problems = read_forced("finance,,feature:chat,global:some")

    assert forced == {"feature:chat"}
    assert [each.split()[0] for each in problems] == ["'finance'", "'global:some'"]


def test_switch_forced_by_the_environment_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCHGEAR_FORCE_ENGAGED", '"segment:finance"')

    with Switchgear(None, force_engaged=["feature:chat"]) as gear:
        told = gear.check(segment="finance")
        asked = gear.allowed(feature="chat"), gear.allowed(feature="search")

    assert (told.switch, told.reason) == ("segment:finance", "SWITCHGEAR_FORCE_ENGAGED")
    assert asked == (False, True)


def test_client_of_the_environment_is_called_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SWITCHGEAR_URL", raising=False)
    monkeypatch.setenv("SWITCHGEAR_SERVICE", "core")
    monkeypatch.setenv("SWITCHGEAR_INSTANCE", "core-1")

    with Switchgear.from_env(instance="core-2") as gear:
        status = gear.status()

    assert (status.service, status.instance) == ("core", "core-2")


KEY, OTHER_KEY = "A" * 43 + "=", "B" * 42 + "A="


@pytest.mark.parametrize(
    "given", [f"{KEY} {OTHER_KEY}", f"{KEY},{OTHER_KEY}\n", [KEY, OTHER_KEY], f"{KEY}, {OTHER_KEY}"]
)
def test_public_keys_are_read_however_they_are_written(given) -> None:
    assert read_public_keys(given) == ((KEY, OTHER_KEY), [])


@pytest.mark.parametrize("key", ["", "hunter2", KEY[:-1], KEY + KEY, "A" * 42 + "\u00fc="])
def test_public_key_that_can_be_none_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="public_key must be 32 bytes in base64"):
        Switchgear(None, public_key=[key])


def test_fallback_url_needs_a_public_key() -> None:
    with pytest.raises(ValueError, match="fallback_url needs public_key"):
        Switchgear("https://there", "t", fallback_url="https://cdn.example/snapshot.json")


def test_own_instance_is_a_name_with_the_process_in_it() -> None:
    assert is_name(own_instance())
    assert own_instance().endswith(f"-{os.getpid()}")


def test_child_of_a_named_instance_has_a_name_of_its_own() -> None:
    named = Settings(url=None, instance="i" * 120, own_name=False)

    child = named.for_child()

    assert is_name(child.instance)
    assert child.instance.endswith(f"-{os.getpid()}")


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a\n", "x" * 121, "token:a", "\ufffd", None])
def test_name_that_the_console_would_not_take_is_refused(name) -> None:
    assert not is_name(name)
    with pytest.raises(ValueError, match="service must be"):
        Settings(url=None, service=name, instance="i")


@pytest.mark.parametrize(
    "url",
    [
        "switchgear.example",
        "ftp://switchgear.example",
        "https://",
        "https://user:secret@switchgear.example",
        "https://switchgear.example?a=1",
        "https://switchgear.example#a",
        "https://switchgear.example:0",
        "https://switchgear.example:99999",
        "https://switch gear.example",
    ],
)
def test_url_that_is_no_console_s_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(ValueError, match="url must be") as refused:
        Settings(url=url, token=TOKEN, instance="i")

    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("token", ["", "a b", "schlüssel", "a\n"])
def test_token_that_can_be_none_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(ValueError, match="token must be") as refused:
        Settings(url="https://switchgear.example", token=token, instance="i")

    assert not token or token not in str(refused.value)


def test_state_is_kept_where_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    assert default_state_dir() == tmp_path / "switchgear"


def test_state_is_kept_nowhere_where_no_folder_can_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nowhere = str(tmp_path / "missing")
    for name in ("HOME", "TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, nowhere)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [nowhere])
    monkeypatch.setattr(tempfile, "tempdir", None)

    with caplog.at_level(logging.WARNING, "switchgear"):
        found = default_state_dir()

    assert found is None
    assert "SWITCHGEAR_STATE_DIR" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"url": 80}, "url"),
        ({"url": b"http://console"}, "url"),
        ({"url": "http://console", "token": 5}, "token"),
        ({"url": "http://console", "token": b"sg_a_b"}, "token"),
        ({"url": None, "force_engaged": 5}, "force_engaged"),
    ],
)
def test_argument_of_a_wrong_type_is_refused_by_name(arguments, name):
    with pytest.raises(TypeError, match=f"^{name} must be"):
        Switchgear(state_dir=None, **arguments)
