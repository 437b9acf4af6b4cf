"""`manage.py dataplane --upstream`: settings of a relay, and clear errors for wrong ones."""

import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from controlplane.core.environment_variables import WrongVariable
from controlplane.core.signatures import SigningKey
from controlplane.dataplane.config import relay_from_environment
from controlplane.dataplane.storage.order_journal import OrderJournal, order_key
from controlplane.dataplane.tests.test_order_set import order
from controlplane.environment.relay import read_relay_environment
from controlplane.processes.relay_command import is_relay_command
from controlplane.tests.installation import ROOT

KEY = SigningKey(bytes(range(32))).public
TOKEN = "sg_relay00001_" + "r" * 32
GIVEN = {"SWITCHGEAR_UPSTREAM": "https://console.example", "SWITCHGEAR_TOKEN": TOKEN}


def run(variables: Mapping[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "manage.py", "dataplane", *arguments],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_settings_are_read() -> None:
    found = read_relay_environment(
        {
            **GIVEN,
            "SWITCHGEAR_UPSTREAM": "https://console.example, http://10.0.0.7:8001/",
            "SWITCHGEAR_PUBLIC_KEY": str(KEY),
            "PLANE_NAME": "eu-1",
        }
    )

    assert found.upstreams == ("https://console.example", "http://10.0.0.7:8001")
    assert found.token == TOKEN
    assert found.public_keys == {KEY.id: KEY}
    assert found.plane_name == "eu-1"


def test_a_token_can_be_replaced_in_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    monkeypatch.delenv("SWITCHGEAR_TOKEN", raising=False)
    monkeypatch.setenv("SWITCHGEAR_UPSTREAM", "https://console.example")
    monkeypatch.setenv("SWITCHGEAR_TOKEN_FILE", str(file))
    monkeypatch.setenv("SWITCHGEAR_DATA_DIR", str(tmp_path / "data"))
    config = relay_from_environment()
    assert config.read_token() == TOKEN

    file.write_text("sg_other00001_x")

    assert config.read_token() == "sg_other00001_x"


def test_it_has_a_secret_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in GIVEN.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SWITCHGEAR_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("SECRET_KEY", "not for relays")

    first, second = relay_from_environment(), relay_from_environment()

    assert first.signing_key == second.signing_key
    assert [path.name for path in (tmp_path / "secrets").iterdir()] == ["relay_key"]
    assert stat.S_IMODE((tmp_path / "secrets" / "relay_key").stat().st_mode) == 0o600


WRONG: dict[str, tuple[Mapping[str, str], str]] = {
    "no upstream": ({"SWITCHGEAR_UPSTREAM": " "}, "SWITCHGEAR_UPSTREAM: must be the URL"),
    "no URL": ({"SWITCHGEAR_UPSTREAM": "console"}, "SWITCHGEAR_UPSTREAM: must be a URL"),
    "a path": ({"SWITCHGEAR_UPSTREAM": "https://a.example/x"}, "must have no user name, path"),
    "no token": ({"SWITCHGEAR_TOKEN": ""}, "SWITCHGEAR_TOKEN: is not set"),
    "no API token": ({"SWITCHGEAR_TOKEN": "secret"}, "SWITCHGEAR_TOKEN: must be an API token"),
    "two tokens": ({"SWITCHGEAR_TOKEN_FILE": "/dev/null"}, "SWITCHGEAR_TOKEN: is set, too"),
    "no file": (
        {"SWITCHGEAR_TOKEN": "", "SWITCHGEAR_TOKEN_FILE": "/nonexistent"},
        "SWITCHGEAR_TOKEN_FILE: /nonexistent can't be read: No such file or directory",
    ),
    "an empty file": (
        {"SWITCHGEAR_TOKEN": "", "SWITCHGEAR_TOKEN_FILE": "/dev/null"},
        "SWITCHGEAR_TOKEN_FILE: must be an API token",
    ),
    "no public key": ({"SWITCHGEAR_PUBLIC_KEY": "abc"}, "SWITCHGEAR_PUBLIC_KEY: must be 32 bytes"),
}


@pytest.mark.parametrize(("variables", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_variable_is_named(variables: Mapping[str, str], message: str) -> None:
    with pytest.raises(WrongVariable, match=message.replace("(", "\\(")):
        read_relay_environment({**GIVEN, **variables})


@pytest.mark.parametrize(
    ("arguments", "variables", "expected"),
    [
        (["dataplane", "--upstream", "x"], {}, True),
        (["dataplane", "--port", "1", "--upstream=x"], {}, True),
        (["dataplane"], {"SWITCHGEAR_UPSTREAM": "x"}, True),
        (["dataplane"], {}, False),
        (["dataplane", "orders"], {}, False),
        (["dataplane", "orders"], {"SWITCHGEAR_UPSTREAM": "x"}, True),
        (["migrate"], {"SWITCHGEAR_UPSTREAM": "x"}, False),
        ([], {}, False),
    ],
)
def test_a_relay_is_asked_for_by_option_or_variable(
    arguments: list[str], variables: Mapping[str, str], expected: bool
) -> None:
    assert is_relay_command(["manage.py", *arguments], variables) is expected


@pytest.mark.slow
def test_a_wrong_setting_ends_the_command_before_anything_is_created(tmp_path: Path) -> None:
    folder = tmp_path / "data"

    done = run({"SWITCHGEAR_DATA_DIR": str(folder)}, "--upstream", "https://console.example")

    assert done.returncode == 2
    assert "SWITCHGEAR_TOKEN: is not set" in done.stderr
    assert "Traceback" not in done.stderr
    assert not folder.exists()


@pytest.mark.slow
def test_a_port_in_use_is_said_and_no_secret_key_is_created(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    variables = {**GIVEN, "SWITCHGEAR_DATA_DIR": str(folder)}

    done = run(variables, "--host", "192.0.2.1", "--port", "8001")

    assert done.returncode == 2
    assert "192.0.2.1" in done.stderr
    assert not folder.exists()


@pytest.mark.slow
def test_the_orders_on_its_disk_are_listed_without_a_secret_key(tmp_path: Path) -> None:
    secrets, secret = tmp_path / "secrets", "of the relay"
    secrets.mkdir()
    (secrets / "relay_key").write_text(secret)
    (secrets / "relay_key").chmod(0o600)
    OrderJournal(tmp_path / "snapshot", (order_key(secret),)).write(order(1))

    done = run({**GIVEN, "SWITCHGEAR_DATA_DIR": str(tmp_path)}, "orders")

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("open  feature:chat  00000000-0000-0000-0000-000000000001")
    assert [path.name for path in secrets.iterdir()] == ["relay_key"]
