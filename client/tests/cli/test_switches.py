"""Switches from a shell, against a real console: what is done, what is shown, how it ends."""

import threading
import time
from contextlib import contextmanager

import httpx
import pytest
from django.db import connection, transaction
from rich.cells import cell_len

from controlplane.core.http.tests.callers import person
from controlplane.core.instances.models import Instance
from switches.rules.tests.factories import create_rule
from switches.tests.browsers import engaged, overdue
from switchgear.cli import exits

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(180)]
WHY = ("--reason", "Wrong figures in P&L answers since 14:02")


def test_switch_is_engaged_extended_acknowledged_and_undone(shell):
    engage = shell("engage", "segment:finance", *WHY, "--for", "4h", "--json")
    status = shell("status", "segment:finance", "--json")
    extend = shell(
        "extend", "segment:finance", "--for", "8h", "--reason", "INC-4411 is not fixed yet"
    )
    known = shell("acknowledge", "segment:finance", "--comment", "kim is at it")
    undo = shell("undo", "segment:finance")

    assert [one.err for one in (engage, status, extend, known)] == [""] * 4
    assert undo.code == exits.FAILED
    assert (engage.json["state"], engage.json["on_expiry"]) == ("engaged", "hold")
    assert status.json["reason"] == WHY[1]
    assert "in 8 h (" in extend.out
    assert "Acknowledged" in known.out
    assert "Release it instead" in undo.err


def test_undo_at_once_releases_it(shell):
    shell("engage", "feature:chat", *WHY)

    result = shell("undo", "feature:chat")

    assert result.code == 0
    assert "released" in result.out


def test_status_lists_what_is_stopped_global_first_and_aligned(shell):
    engaged("segment:finance", reason="재무 답변에 다른 부서의 값이 나옵니다")
    engaged("global:all", reason="Everything leaks since 02:10")
    overdue("segment:late")

    result = shell("status")

    table = [line for line in result.out.splitlines() if "ENGAGED" in line]
    places = [cell_len(line[: line.index(":")].rsplit(" ", 1)[0]) for line in table]
    assert result.code == 0
    assert "3 engaged (1 OVERDUE)" in result.out
    assert "global:all" in table[0]
    assert len(set(places)) == 1
    assert "재무 답변에 다른 부서의 값이 나옵니다" in result.out
    assert "Degradation: 0, normal" in result.out


def test_history_tells_what_each_episode_was_and_how_it_ended(shell):
    never = shell("history", "feature:chat")
    shell("engage", "feature:chat", *WHY)
    shell("undo", "feature:chat")
    shell("engage", "feature:chat", "--reason", "답변이 다시 틀립니다, INC-4412", "--for", "2h")

    told, found = shell("history", "feature:chat"), shell("history", "feature:chat", "--json").json

    assert "feature:chat was never engaged." in never.out
    assert [one["reason"] for one in found] == ["답변이 다시 틀립니다, INC-4412", WHY[1]]
    latest, first = told.out.index("답변이 다시 틀립니다"), told.out.index("Wrong figures")
    assert latest < told.out.index("undone")
    assert latest < first
    assert told.out.count("ENGAGED") == 2  # The column, and the one that lasts.
    assert "by token:" in told.out
    assert told.err == ""


def test_history_leaves_room_for_why_whoever_it_was(shell):
    """Only that column folds; what stands in others takes its room on a narrow terminal."""
    engaged("feature:chat", by=person("operator", "n" * 60), reason="Wrong figures since 14:02")

    head, why, who = shell("history", "feature:chat").out.splitlines()

    assert head.index("REASON") == why.index("Wrong figures") == who.index("by user:nnn")


def test_where_it_is_is_said(shell):
    board = shell("status")
    one = shell("engage", "segment:finance", *WHY, "--dry-run")

    where = f"Seoul 시험 · {shell.url.removeprefix('http://')}"
    assert board.out.startswith(where)
    assert [line.split(maxsplit=1) for line in one.out.splitlines()].count(["console", where]) == 1


def test_status_as_json_is_what_the_api_says(shell):
    engaged("segment:finance")

    shown = shell("status", "--json").json
    headers = {"Authorization": f"Bearer {shell.token}"}
    path = "/api/v1/switches/segment/finance/"
    one = httpx.get(shell.url + path, headers=headers, verify=False).json()

    assert shown["switches"] == [one]
    assert shown["degradation"]["level"] == 0


@pytest.mark.parametrize(
    ("stopped", "queried", "code"),
    [
        (None, "feature:chat", 0),
        ("feature:chat", "feature:chat", exits.STOPPED),
        ("feature:chat", "feature:other", 0),
        ("global:all", "feature:chat", exits.STOPPED),
        ("global:all", "global", exits.STOPPED),
    ],
)
def test_exit_code_says_whether_it_is_stopped(shell, stopped, queried, code):
    if stopped:
        engaged(stopped)

    assert shell("status", queried, "--exit-code").code == code
    assert shell("status", queried).code == 0


def test_release_begins_a_ramp_by_the_plan_that_was_said(shell):
    engaged("feature:chat")

    plan = ("--plan", "5,50,100", "--dwell", "2m", "--gate", "breaker:core->oracle")
    result = shell("release", "feature:chat", "--reason", "Fixed by deploy 412", *plan, "--json")

    steps = result.json["ramp"]["steps"]
    assert result.code == 0
    assert [(one["percent"], one["dwell_seconds"]) for one in steps] == [
        (5, 120), (50, 120), (100, 120),
    ]  # fmt: skip
    assert steps[0]["gates"][0]["dependency"] == "core->oracle"
    assert "5 %, 1 of 3" in shell("ramp").out
    assert shell("status", "feature:chat", "--exit-code").code == exits.STOPPED


def test_what_a_second_person_has_to_approve_ends_with_6(shell):
    engaged("global:all")

    release = shell("release", "global", "--reason", "It does not leak any more")
    permanent = shell("engage", "feature:old", *WHY, "--for", "permanent")

    assert (release.err, permanent.err) == ("", "")
    assert (release.code, permanent.code) == (exits.NEEDS_APPROVAL, exits.NEEDS_APPROVAL)
    assert "second person" in release.out
    assert shell("status", "global", "--json").json["state"] == "engaged"
    assert shell("status", "feature:old", "--json").json["state"] == "engaged"


def test_immediate_release_releases_where_the_role_allows_it(shell_of):
    engaged("feature:chat")
    release = ("release", "feature:chat", "--reason", "Fixed by deploy 412", "--immediate")

    operator = shell_of()(*release)
    approver = shell_of("switches:read", "switches:write", role="approver")(*release)

    assert (operator.code, approver.code) == (exits.NO_RIGHTS, 0)
    assert "released" in approver.out


def test_safety_rule_is_named_and_broken_only_when_it_is_named_back(shell):
    create_rule("at_most", "segment:*", name="one region", n=1)
    engaged("segment:east")

    refused = shell("engage", "segment:west", *WHY)
    as_json = shell("engage", "segment:west", *WHY, "--json")
    broken = shell("engage", "segment:west", *WHY, "--break-glass", "one region")

    assert (refused.code, refused.out) == (exits.FAILED, "")
    assert "--break-glass 'one region'" in refused.err
    assert as_json.problem["rule"] == "one region"
    assert as_json.problem["would_pass"]
    assert broken.code == 0
    assert "must review this" in broken.out


def test_dry_run_changes_nothing(shell):
    result = shell("engage", "segment:finance", *WHY, "--dry-run")

    assert result.code == 0
    assert result.out.startswith("Dry run: nothing changed.")
    assert "affects" in result.out
    assert shell("status", "segment:finance", "--json").json["state"] == "released"


def test_engaged_already_says_by_whom_and_how_to_go_on(shell):
    engaged("segment:finance", reason="Double charges since 02:10")

    result = shell("engage", "segment:finance", *WHY)

    assert result.code == exits.FAILED
    assert "Double charges since 02:10" in result.err
    assert "switchgear extend segment:finance" in result.err


def test_missing_scope_and_unknown_token_end_with_4(shell_of):
    reader = shell_of("switches:read")
    stranger = type(reader)(reader.url, "sg_nobody_knows-this")

    assert reader("engage", "segment:finance", *WHY).code == exits.NO_RIGHTS
    assert reader("slo").code == exits.NO_RIGHTS
    assert stranger("status").code == exits.NO_RIGHTS
    assert reader("status").code == 0


def test_wait_ends_when_every_instance_applies_it(shell):
    over = threading.Event()
    instance = threading.Thread(target=_apply_what_is_published, args=(shell, over))
    instance.start()
    time.sleep(0.3)

    result = shell("engage", "segment:finance", *WHY, "--wait", "--wait-seconds", "30", "--json")

    over.set()
    instance.join()
    assert result.code == 0
    assert (result.json["effect"]["applied"], result.json["effect"]["instances"]) == (1, 1)
    assert result.err == ""


@contextmanager
def no_instances():
    """Keep it so that none is known: an earlier test's heartbeat is written up to 10 s late."""
    while True:
        Instance.objects.all().delete()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE core_instance IN SHARE MODE")
            if not Instance.objects.exists():
                yield
                return


def test_wait_without_any_instance_ends_with_1_though_it_is_engaged(shell):
    with no_instances():
        result = shell("engage", "segment:finance", *WHY, "--wait", "--wait-seconds", "1")

    assert result.code == exits.FAILED
    assert "no instance is reporting" in result.err
    assert "0 of 0 instances" in result.err
    assert shell("status", "segment:finance", "--exit-code").code == exits.STOPPED


def _apply_what_is_published(shell, over):
    """Poll as an instance until it has said that it applies the engagement.

    No longer: the console would write a later poll ten seconds later, while other tests run.
    """
    headers = {"Authorization": f"Bearer {shell.token}", "Switchgear-Instance": "core/a1"}
    while not over.wait(0.1):
        response = httpx.get(
            f"{shell.url}/api/v1/snapshot", headers=headers, timeout=10, verify=False
        )
        if response.status_code == 200:
            snapshot = response.json()
            published = f"{snapshot['epoch']}.{snapshot['version']}"
            if snapshot["switches"] and headers.get("Switchgear-Applied") == published:
                return
            headers["Switchgear-Applied"] = published
