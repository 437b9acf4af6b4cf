"""Ramps from the server's shell: started, shown and aborted."""

import json

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from controlplane.core.clock import db_now
from switches.management.commands import killswitch as command
from switches.models import Ramp
from switches.ramps.tests.ramp_helpers import (
    CHAT,
    GATED,
    engage,
    get_person,
    get_ramp_state,
    get_share,
    get_state,
    release,
    run_tick,
    seconds,
    start_ramp,
)

pytestmark = pytest.mark.django_db
WHICH = ("--feature", "chat")
WHY = ("--reason", "5xx below 0.1 % for twenty minutes")


def killswitch(*arguments):
    call_command("killswitch", *arguments)


def test_release_begins_a_ramp_and_tells_its_steps_and_how_to_stop_it(capsys):
    engage(CHAT, db_now())

    killswitch("release", *WHICH, *WHY)

    output = capsys.readouterr().out
    assert (get_share(), get_ramp_state(Ramp.objects.get())) == (5, "running")
    assert "feature:chat  ramping 5 %" in output
    for share in ("step 1: 5 % for 300 s", "step 2: 25 % for 300 s", "step 3: 100 % for 300 s"):
        assert share in output
    assert "manage.py killswitch abort --feature chat --reason" in output


def test_release_at_once_releases(capsys):
    engage(CHAT, db_now())

    killswitch("release", *WHICH, *WHY, "--mode", "immediate")

    assert get_state() == "released"
    assert "abort" not in capsys.readouterr().out


def test_status_tells_how_far_the_ramp_is_and_why_it_holds(capsys):
    now = db_now()
    ramp = start_ramp(now, GATED)
    run_tick(now + seconds(60))

    killswitch("status", *WHICH)

    output = capsys.readouterr().out
    assert f"ramp {ramp.pk} holding, step 1 of 2, 5 %" in output
    assert "external gate smoke" in output


def test_status_names_what_blocks_from_above(capsys):
    engage("global:all", db_now())

    killswitch("status", *WHICH)
    killswitch("status", "--global")

    below, above, itself = (
        line
        for line in capsys.readouterr().out.splitlines()
        if "global:all" in line or "chat" in line
    )
    assert below == "feature:chat  released"
    assert above == f"  blocked anyway by {itself}"


def test_status_of_one_that_waits_for_approval(capsys):
    now = db_now()
    engage("global:all", now)
    release("global:all", now, by=get_person())

    killswitch("status", "--global")

    assert "pending_approval, step 1 of 3" in capsys.readouterr().out


def test_json_is_the_resource_with_the_ramp(capsys):
    ramp = start_ramp(db_now())

    killswitch("status", *WHICH, "--json")
    killswitch("list", "--json")

    first, every = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first["state"], first["ramp"]) == ("ramping", ramp.pk)
    assert every[0]["ramp"] == ramp.pk


def test_abort_stops_it_again(capsys):
    ramp = start_ramp(db_now())

    killswitch("abort", *WHICH, "--reason", "errors rise again")

    assert (get_ramp_state(ramp), get_share(), get_state()) == ("aborted", 0, "engaged")
    assert "feature:chat  engaged" in capsys.readouterr().out


def test_abort_of_what_does_not_ramp_is_told():
    engage(CHAT, db_now())

    with pytest.raises(CommandError, match="no running ramp"):
        killswitch("abort", *WHICH, "--reason", "errors rise again")


def test_a_long_list_says_that_there_are_more(monkeypatch, capsys):
    monkeypatch.setattr(command, "MAX_LISTED", 2)
    for name in ("a", "b", "c"):
        engage(f"feature:{name}", db_now())

    killswitch("list")

    output = capsys.readouterr()
    assert [line.split()[0] for line in output.out.splitlines()] == ["feature:a", "feature:b"]
    assert "More than 2" in output.err
