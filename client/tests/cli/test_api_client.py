"""Consoles that answer late, wrong or not at all; and what is said of it."""

import json

import pytest

from switchgear.cli import exits
from tests.cli.shell import CLOSE, TOKEN, Shell

RELEASED = {
    "id": "feature:chat", "scope": "feature", "key": "chat", "state": "released",
    "allow_percent": 100, "reason": None, "engaged_by": None, "engaged_at": None,
    "expires_at": None, "on_expiry": None, "permanent": False, "overdue": False, "version": 3,
    "owner": "", "description": "", "runbook_url": "", "last_proven_at": None, "ramp": None,
    "effect": None,
}  # fmt: skip
ENGAGED = {
    **RELEASED, "state": "engaged", "allow_percent": 0, "reason": "Wrong \x1b[31mfigures\u202e",
    "engaged_by": "kim", "engaged_at": "2026-11-22T14:00:00Z",
    "expires_at": "2026-11-22T18:00:00Z", "on_expiry": "hold",
}  # fmt: skip
ENGAGE = ("engage", "feature:chat", "--reason", "Wrong figures in answers")
PATH = "/api/v1/switches/feature/chat/engage"


def test_lost_answer_is_asked_for_again_under_the_same_key(console, asking):
    console.answer("POST", PATH, CLOSE, ENGAGED)

    result = asking(*ENGAGE, "--json")

    keys = [headers["Idempotency-Key"] for _, _, headers, _ in console.asked]
    assert (result.code, result.json) == (0, ENGAGED)
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert console.asked[0][3] == console.asked[1][3]


def test_each_command_has_a_key_of_its_own(console, asking):
    console.answer("POST", PATH, ENGAGED)

    asking(*ENGAGE)
    asking(*ENGAGE)

    assert len({headers["Idempotency-Key"] for _, _, headers, _ in console.asked}) == 2


def test_answer_lost_twice_is_said_to_be_unknown(console, asking):
    console.answer("POST", PATH, CLOSE)

    result = asking(*ENGAGE)

    assert result.code == exits.UNREACHABLE
    assert "may have been made" in result.err
    assert len(console.asked) == 2


def test_console_that_is_not_there_is_no_doubt():
    result = Shell("http://127.0.0.1:1")(*ENGAGE, "--json")

    assert (result.code, result.out) == (exits.UNREACHABLE, "")
    assert result.problem["type"] == exits.UNREACHABLE_TYPE
    assert "not known" not in result.problem["detail"]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((302, {"Location": "https://sso.example/login?next=secret"}, b""), "sso.example/login."),
        ((200, {"Content-Type": "text/html"}, b"<p>hello"), "SWITCHGEAR_URL"),
        ((200, {"Content-Type": "application/json"}, b'{"half'), "SWITCHGEAR_URL"),
        ((404, {"Content-Type": "text/html"}, b"nginx"), "SWITCHGEAR_URL"),
        ((200, {"Content-Type": "application/json"}, b"[]"), "SWITCHGEAR_URL"),
        ((502, {"Content-Type": "text/html"}, b"nginx"), "502"),
        ((503, {"detail": "The database does not respond.", "status": 503}), "killswitch"),
    ],
)
def test_what_is_no_console_ends_with_5_and_a_sentence(console, asking, answer, sentence):
    console.answer("GET", "/api/v1/slos/", answer)

    result = asking("slo")

    assert (result.code, result.out) == (exits.UNREACHABLE, "")
    assert sentence in result.err


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, 1), (401, 4), (403, 4), (404, 3), (409, 1), (422, 1), (429, 1), (500, 1), (503, 5)],
)
def test_every_refusal_has_its_exit_code_and_the_problem_is_passed_on(
    console, asking, status, code
):
    problem = {"type": "urn:x", "title": "No", "status": status, "detail": "Because.", "more": [1]}
    console.answer("POST", PATH, (status, problem))

    result = asking(*ENGAGE, "--json")

    assert (result.code, result.out) == (code, "")
    assert result.problem == problem


@pytest.mark.parametrize(
    ("more", "hint"),
    [
        ({"who_may": ["amy", "lee"], "on_call": "Amy Wu"}, ["Who may: amy, lee. On call: Amy Wu."]),
        ({"who_may": ["amy"], "on_call": None}, ["Who may: amy."]),
        ({"who_may": [], "on_call": "Amy Wu"}, ["On call: Amy Wu."]),
        ({"who_may": [], "on_call": None}, []),
        ({"who_may": "amy", "on_call": ""}, []),
    ],
)
def test_refusal_names_who_may(console, asking, more, hint):
    detail = "Payments owns feature:chat. Only its members may release it."
    console.answer("POST", PATH, (403, {"status": 403, "detail": detail, **more}))

    result = asking(*ENGAGE)

    assert result.code == exits.NO_RIGHTS
    assert result.err.splitlines() == [f"switchgear: {detail}", *(f"  {one}" for one in hint)]


def test_wrong_fields_are_named_as_the_options_are(console, asking):
    errors = {"reason": ["Too short."], "plan[1].percent": ["Must grow."], "other": ["Wrong."]}
    problem = {"status": 400, "detail": "…", "errors": errors}
    console.answer("POST", PATH, (400, problem))

    lines = asking(*ENGAGE).err.splitlines()

    assert lines == [
        "switchgear: 3 fields are wrong.",
        "  --reason: Too short.",
        "  --plan (plan[1].percent): Must grow.",
        "  other: Wrong.",
    ]


def test_reasons_of_others_do_not_move_the_terminal(console, asking):
    console.answer("GET", "/api/v1/switches/", {"next": None, "results": [ENGAGED]})
    console.answer("GET", "/api/v1/degradation", {"level": 0, "name": "normal", "causes": []})

    result = asking("status")

    assert "Wrong \ufffd[31mfigures\ufffd" in result.out
    assert "\x1b" not in result.out
    assert "\u202e" not in result.out


def test_times_follow_the_consoles_clock_not_this_machines(console, asking):
    date = {"Date": "Sun, 22 Nov 2026 15:00:00 GMT", "Content-Type": "application/json"}
    console.answer(
        "GET", "/api/v1/switches/feature/chat/", (200, date, json.dumps(ENGAGED).encode())
    )
    console.answer(
        "GET", "/api/v1/switches/global/all/", (200, date, json.dumps(RELEASED).encode())
    )

    result = asking("status", "feature:chat")

    assert "in 3 h (" in result.out
    assert "1 h ago" in result.out


def test_pages_are_followed_on_this_console_whatever_host_they_name(console, asking):
    following = "http://elsewhere.invalid/api/v1/slos/?cursor=abc&limit=200"
    first, last = [{"name": "a", "state": "ok"}], [{"name": "b", "state": "ok"}]
    console.answer(
        "GET", "/api/v1/slos/", {"next": following, "results": first},
        {"next": None, "results": last},
    )  # fmt: skip

    result = asking("slo", "--json")

    assert [one["name"] for one in result.json] == ["a", "b"]
    assert "cursor=abc" in console.asked[1][1]


def test_token_is_in_no_output(console, asking):
    console.answer("POST", PATH, (500, {"detail": "It broke.", "status": 500}))

    for result in (
        asking(*ENGAGE),
        asking(*ENGAGE, "--json"),
        Shell("http://127.0.0.1:1")(*ENGAGE),
    ):
        assert TOKEN not in result.out + result.err


def test_proxy_that_refuses_is_named_without_its_password(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://kim:secret@127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)

    result = Shell("http://console.invalid")("slo")

    assert result.code == exits.UNREACHABLE
    assert "via the proxy 127.0.0.1:1 " in result.err
    assert "secret" not in result.err
