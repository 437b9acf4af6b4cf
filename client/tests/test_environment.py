"""A client whose environment is wrong is offline and says so; it does not keep its service down."""

import logging

import pytest

from switchgear import Switchgear
from switchgear.environment import read_environment
from tests.fake_console import TOKEN, console
from tests.wait_helpers import wait_until

URL = "https://switchgear.example"
SETTINGS = (
    *("URL", "TOKEN", "SERVICE", "INSTANCE", "STATE_DIR", "BOOTSTRAP", "FORCE_ENGAGED"),
    *("PUBLIC_KEY", "FALLBACK_URL"),
)
KEY = "A" * 43 + "="
FILE = "https://cdn.example/snapshot.json"


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """Sets these variables, and no others of Switchgear's."""
    for name in SETTINGS:
        monkeypatch.delenv(f"SWITCHGEAR_{name}", raising=False)
    monkeypatch.setenv("SWITCHGEAR_STATE_DIR", str(tmp_path / "state"))

    def set_all(**values):
        for name, value in values.items():
            monkeypatch.setenv(f"SWITCHGEAR_{name}", value)

    return set_all


def logged(caplog, level):
    return [one.getMessage() for one in caplog.records if one.levelno == level]


@pytest.mark.parametrize("around", ["{}\n", " {}", "\t{}\r\n", "{} "])
def test_white_space_around_a_value_is_no_problem(environment, around, caplog):
    with console() as there:
        environment(
            URL=around.format(there.url), TOKEN=around.format(TOKEN), SERVICE=around.format("core")
        )
        with Switchgear.from_env() as gear:
            assert gear.wait_ready(20)
            status = gear.status()

    assert (status.service, status.problems) == ("core", ())
    assert not logged(caplog, logging.ERROR)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"URL": URL}, ["TOKEN"]),
        ({"URL": URL, "TOKEN": "  "}, ["TOKEN"]),
        ({"URL": URL, "TOKEN": "sg_a hunter2"}, ["TOKEN"]),
        ({"URL": URL, "TOKEN": "sg_a_h\u00fcnter2"}, ["TOKEN"]),
        ({"URL": "switchgear.example", "TOKEN": "sg_a_hunter2"}, ["URL"]),
        ({"URL": "https://kim:hunter2@switchgear.example", "TOKEN": "sg_a_hunter2"}, ["URL"]),
        ({"TOKEN": "sg_a_hunter2"}, ["URL"]),
        ({"URL": "htps://x", "TOKEN": "a hunter2", "SERVICE": "a/b"}, ["URL", "TOKEN", "SERVICE"]),
    ],
)
def test_without_a_usable_console_the_client_is_offline_and_each_problem_is_logged(
    environment, values, names, caplog
):
    environment(FORCE_ENGAGED="feature:search", **values)

    with Switchgear.from_env() as gear:
        status = gear.status()
        answers = gear.allowed(feature="chat"), gear.allowed(feature="search")

    errors = logged(caplog, logging.ERROR)
    assert (status.way, status.source) == ("offline", "none")
    assert answers == (True, False)
    assert [each.partition(" ")[2].startswith("SWITCHGEAR_") for each in errors] == [True] * len(
        names
    )
    assert [name in each for name, each in zip(names, errors, strict=True)] == [True] * len(names)
    assert len(status.problems) == len(names)
    assert "hunter2" not in caplog.text + repr(status)


def test_console_is_not_asked_without_a_token(environment):
    with console() as there:
        environment(URL=there.url)
        with Switchgear.from_env() as gear:
            assert not gear.wait_ready(0.2)
            gear.policy("core->oracle")
        assert there.asked == []


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("team/core", "team-core"),
        ("a core", "a-core"),
        ("token:a", "token-a"),
        ("x" * 130, "x" * 120),
    ],
)
def test_name_that_the_console_would_not_take_is_made_one(environment, caplog, given, name):
    environment(SERVICE=given, INSTANCE=given)

    with Switchgear.from_env(url=None) as gear:
        status = gear.status()

    assert (status.service, status.instance) == (name, name)
    assert len(logged(caplog, logging.ERROR)) == 2


def test_name_of_which_nothing_is_left_is_as_good_as_none(environment):
    environment(SERVICE="//", INSTANCE="\ufffd")

    with Switchgear.from_env(url=None) as gear:
        assert gear.status().service == "unnamed"
        assert gear.status().instance


@pytest.mark.parametrize(
    "broken", [{"TOKEN": ""}, {"TOKEN": "a b"}, {"URL": "htps://there"}, {"URL": ""}]
)
def test_copy_on_disk_counts_although_the_console_can_not_be_asked(environment, broken):
    with console() as there:
        there.engage("feature:chat")
        there.override("core->oracle", "forced_open")
        environment(URL=there.url, TOKEN=TOKEN, SERVICE="core")
        with Switchgear.from_env() as gear:
            breaker = gear.breaker("core->oracle")
            wait_until(lambda: breaker.mode == "forced_open" and not gear.allowed(feature="chat"))

    environment(**broken)
    with Switchgear.from_env() as gear:
        breaker = gear.breaker("core->oracle")

        assert (gear.status().way, gear.status().source) == ("offline", "disk")
        assert not gear.allowed(feature="chat")
        assert breaker.mode == "forced_open"


def test_copies_of_two_consoles_are_not_mixed_up(environment):
    for feature in ("chat", "search"):
        with console() as there:
            there.engage(f"feature:{feature}")
            environment(URL=there.url, TOKEN=TOKEN)
            with Switchgear.from_env() as gear:
                wait_until(lambda feature=feature, gear=gear: not gear.allowed(feature=feature))

    environment(URL="htps://there")
    with Switchgear.from_env() as gear:
        assert gear.status().source == "none"


def test_forced_switch_that_can_be_none_is_a_problem(environment, caplog):
    environment(FORCE_ENGAGED="finance,feature:chat")

    with Switchgear.from_env(url=None) as gear:
        [problem] = gear.status().problems

    assert "'finance'" in problem
    assert len(logged(caplog, logging.ERROR)) == 1


def test_strict_raises_and_names_all_problems(environment, caplog):
    environment(URL="htps://there", TOKEN="a hunter2", SERVICE="a/b", FORCE_ENGAGED="finance")

    with pytest.raises(ValueError, match="SWITCHGEAR_URL") as raised:
        Switchgear.from_env(strict=True)

    for name in ("SWITCHGEAR_TOKEN", "SWITCHGEAR_SERVICE", "SWITCHGEAR_FORCE_ENGAGED"):
        assert name in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_client_that_is_to_be_offline_needs_no_token(environment, caplog):
    environment(URL=URL)

    with Switchgear.from_env(offline=True, strict=True) as gear:
        assert gear.status().problems == ()

    assert not logged(caplog, logging.ERROR)


def test_strict_wants_a_console(environment):
    with pytest.raises(ValueError, match="SWITCHGEAR_URL is not set"):
        Switchgear.from_env(strict=True)


def test_strict_with_all_in_order_raises_nothing(environment):
    environment(URL="http://127.0.0.1:9", TOKEN=TOKEN)

    with Switchgear.from_env(strict=True) as gear:
        assert gear.status().problems == ()


def test_without_a_console_in_the_environment_there_is_a_warning_and_no_problem(
    environment, caplog
):
    with Switchgear.from_env() as gear:
        assert gear.status().problems == ()

    assert len(logged(caplog, logging.WARNING)) == 1
    assert not logged(caplog, logging.ERROR)


@pytest.mark.parametrize(
    "arguments",
    [{"url": "htps://there"}, {"url": URL, "token": "a b"}, {"url": None, "service": "team/core"}],
)
def test_argument_that_can_not_be_raises_also_with_from_env(environment, arguments):
    environment(TOKEN=TOKEN)

    with pytest.raises(ValueError, match="must be"):
        Switchgear.from_env(**arguments)


def test_argument_goes_before_a_variable_that_is_wrong(environment, caplog):
    environment(URL="htps://there", SERVICE="a/b")

    with Switchgear.from_env(url=None, service="core") as gear:
        assert gear.status().service == "core"

    assert not logged(caplog, logging.ERROR)


def test_variable_that_nobody_knows_is_named_once_with_the_one_it_resembles(environment, caplog):
    environment(TOKNE="sg_a_hunter2", FLAVOUR="vanilla")

    with Switchgear.from_env(url=None):
        pass

    [warning] = logged(caplog, logging.WARNING)
    assert "SWITCHGEAR_TOKNE (SWITCHGEAR_TOKEN?)" in warning
    assert "SWITCHGEAR_FLAVOUR" in warning
    assert "hunter2" not in warning


@pytest.mark.parametrize(
    "name",
    [
        *("DATA_DIR", "DOCS_DIR", "STATIC_DIR", "ADMIN_PASSWORD", "SUPERVISOR_PID", "TAG"),
        *("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_8000_TCP_ADDR"),
        *("DATAPLANE_SERVICE_HOST", "DATAPLANE_PORT_8000_TCP"),
    ],
)
def test_variables_of_the_console_and_of_kubernetes_are_known(environment, caplog, name):
    environment(**{name: "1"})

    with Switchgear.from_env(url=None):
        pass

    assert not logged(caplog, logging.WARNING)


def test_environment_gives_the_arguments():
    values = {
        "SWITCHGEAR_URL": URL,
        "SWITCHGEAR_TOKEN": TOKEN,
        "SWITCHGEAR_SERVICE": "core",
        "SWITCHGEAR_INSTANCE": "core-1",
        "SWITCHGEAR_STATE_DIR": "/var/lib/core",
        "SWITCHGEAR_BOOTSTRAP": "/etc/switchgear/snapshot.json",
        "PATH": "/bin",
    }

    found, problems = read_environment(values, {})

    assert (found["url"], found["token"], problems) == (URL, TOKEN, [])
    assert (found["service"], found["instance"]) == ("core", "core-1")
    assert (found["state_dir"], found["bootstrap"]) == (
        "/var/lib/core",
        "/etc/switchgear/snapshot.json",
    )


@pytest.mark.parametrize(
    ("value", "keys"), [(f"{KEY} wrong", (KEY,)), ("wrong", ()), (f"{KEY[:-4]},", ())]
)
def test_public_key_that_is_none_is_a_problem_and_does_not_turn_verification_off(value, keys):
    found, [problem] = read_environment({"SWITCHGEAR_PUBLIC_KEY": value}, {})

    assert found["public_key"] == keys
    assert problem.startswith("SWITCHGEAR_PUBLIC_KEY can't be used: public_key must be 32 bytes")
    assert problem.endswith("; no snapshot is accepted") is not bool(keys)


def test_without_a_usable_public_key_no_snapshot_is_put_in_force(environment):
    with console() as there:
        there.engage("feature:chat")
        environment(URL=there.url, TOKEN=TOKEN, PUBLIC_KEY="wrong")
        with Switchgear.from_env() as gear:
            wait_until(lambda: gear.status().error, 20)
            assert gear.status().error == "signature: no usable public key to verify it"
            assert gear.allowed(feature="chat")
        with pytest.raises(ValueError, match="SWITCHGEAR_PUBLIC_KEY"):
            Switchgear.from_env(strict=True)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"FALLBACK_URL": FILE}, "fallback_url needs public_key"),
        ({"FALLBACK_URL": "cdn.example", "PUBLIC_KEY": KEY}, "must be the address of a file"),
        ({"FALLBACK_URL": "https://kim:pw@x/y", "PUBLIC_KEY": KEY}, "must be the address of a"),
    ],
)
def test_fallback_url_that_can_not_be_used_is_a_problem(values, problem):
    variables = {f"SWITCHGEAR_{name}": value for name, value in values.items()}

    found, [said] = read_environment(variables, {})

    assert "fallback_url" not in found
    assert said.startswith("SWITCHGEAR_FALLBACK_URL is not used: ")
    assert problem in said


def test_empty_variables_are_as_good_as_none():
    assert read_environment({"SWITCHGEAR_URL": "", "SWITCHGEAR_SERVICE": " "}, {}) == ({}, [])
