"""Anyone on call may stop a switch; starting again belongs to the team that owns it."""

from dataclasses import replace
from functools import partial

import pytest

from controlplane.accounts.models import AuthorityRule
from controlplane.accounts.teams import grants
from controlplane.accounts.tokens import services as tokens
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden
from controlplane.core.http.tests.callers import Api, signed_in, with_token
from controlplane.core.roles import OPERATOR_SCOPES
from switches import services
from switches.drills import services as drills
from switches.models import Episode, Ramp, Rule
from switches.ramps import actions
from switches.rules import services as rules
from switches.rules.tests.factories import create_rule
from switches.trips import resolution
from switches.trips import services as trips

from .browsers import browser, text
from .ramps import run_workers
from .teams import CHAT, FINANCE, People, join

pytestmark = pytest.mark.django_db
SAFE = {"justification": "5xx below 0.1 % for twenty minutes"}
WHY = "The owner can't be reached and orders are lost"
OWNERSHIP = {"rule": "ownership", "reason": WHY}
BOTH = {"rule": ["ownership", "two-person"], "reason": WHY}
IMMEDIATE = {"mode": "immediate"}


@pytest.fixture
def people():
    return People()


def release(api, switch=FINANCE, **fields):
    return api.post(f"/switches/{switch.replace(':', '/')}/release", {**SAFE, **fields})


def state_of(switch):
    scope, _, key = switch.partition(":")
    found = Episode.objects.filter(switch_id=f"{scope}:{key}", ended_at=None).first()
    return found.state.value if found else "released"


@pytest.mark.parametrize("name", ["member", "stranger", "strange_approver", "root_approver"])
@pytest.mark.parametrize("switch", [FINANCE, CHAT, "global:all", "feature:nobodys"])
def test_anyone_on_call_stops_extends_and_undoes(people, name, switch):
    api, path = people.api(name), f"/switches/{switch.replace(':', '/')}"

    assert api.engage(switch).status_code == 200
    body = {"expires_in": "48h", "reason": "still broken: INC-7 is open"}
    assert api.post(f"{path}/acknowledge").status_code == 200
    assert api.post(f"{path}/extend", body).status_code == 200
    other = f"{switch}2" if switch != "global:all" else FINANCE
    assert api.engage(other).status_code == 200
    assert api.post(f"/switches/{other.replace(':', '/')}/undo").status_code == 200


@pytest.mark.parametrize(
    ("name", "switch", "status"),
    [
        ("member", FINANCE, 202),
        ("lead", FINANCE, 202),
        ("root_approver", FINANCE, 202),
        ("stranger", FINANCE, 403),
        ("strange_approver", FINANCE, 403),
        ("strange_lead", FINANCE, 403),
        ("admin", FINANCE, 403),
        ("stranger", "feature:nobodys", 202),
        ("stranger", "feature:search-a", 202),
        ("member", "feature:search-a", 403),
        ("root_approver", "global:all", 202),
        ("approver", "global:all", 403),
    ],
)
def test_release_by_ramp_belongs_to_the_owner(people, name, switch, status):
    people.api("stranger").engage(switch)

    response = release(people.api(name), switch)

    assert response.status_code == status
    if status == 403:
        assert state_of(switch) == "engaged"
        assert not Approval.objects.exists()


def test_refusal_names_the_owner_and_who_may_and_offers_to_ask(people):
    people.api("stranger").engage(FINANCE)

    refused = release(people.api("stranger")).json()

    assert refused["detail"] == ("Payments owns segment:finance. Only its members may release it.")
    assert (refused["action"], refused["resource"]) == ("release", FINANCE)
    assert (refused["owner"], refused["can_ask"]) == ("payments", True)
    assert refused["who_may"] == ["lee", "amy", "pat", "rita"]


@pytest.mark.parametrize(
    ("name", "status"),
    [("member", 403), ("lead", 200), ("approver", 200), ("root_approver", 200), ("admin", 403)],
)
def test_release_at_once_takes_an_approver_or_a_lead_of_the_owner(people, name, status):
    people.api("stranger").engage(CHAT)

    response = release(people.api(name), CHAT, **IMMEDIATE)

    assert response.status_code == status
    if name == "member":
        assert "Omit `mode`" in response.json()["detail"]


def test_asking_makes_the_release_request_that_the_owner_approves(people):
    people.api("stranger").engage(CHAT)

    asked = release(people.api("stranger"), CHAT, ask=True, **IMMEDIATE)

    assert asked.status_code == 202
    path = f"/approvals/{asked.json()['approval']['id']}/approve"
    assert [
        people.api(name).post(path).status_code
        for name in ("stranger", "strange_approver", "strange_lead", "admin", "member")
    ] == [403] * 5
    assert state_of(CHAT) == "engaged"
    assert people.api("lead").post(path).status_code == 200
    assert state_of(CHAT) == "released"


def test_asking_twice_makes_one_request(people):
    people.api("stranger").engage(CHAT)

    first, second = (release(people.api("stranger"), CHAT, ask=True) for _ in range(2))

    assert first.json()["approval"]["id"] == second.json()["approval"]["id"]
    assert Ramp.objects.count() == 1


def test_the_owner_who_asks_releases_nothing_yet(people):
    """A form that was opened by a stranger and sent by a new member must not surprise."""
    people.api("member").engage(CHAT)

    asked = release(people.api("lead"), CHAT, ask=True, **IMMEDIATE)

    assert (asked.status_code, state_of(CHAT)) == (202, "engaged")
    path = f"/approvals/{asked.json()['approval']['id']}/approve"
    assert people.api("lead").post(path).status_code == 403
    assert people.api("approver").post(path).status_code == 200


def test_asking_does_not_go_round_safety_rules(people):
    create_rule("at_least_one", "feature:*", "segment:*")
    people.api("stranger").engage(CHAT)

    assert release(people.api("stranger"), CHAT, ask=True).status_code == 409
    assert not Approval.objects.exists()


@pytest.mark.parametrize("verdict", ["approve", "deny"])
@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("strange_approver", 403),
        ("strange_lead", 403),
        ("admin", 403),
        ("lead", 200),
        ("approver", 200),
        ("root_approver", 200),
    ],
)
def test_requests_are_decided_by_the_owner(people, verdict, name, status):
    people.api("member").engage(FINANCE)
    asked = release(people.api("member"), **IMMEDIATE).json()["approval"]["id"]

    response = people.api(name).post(f"/approvals/{asked}/{verdict}")

    assert response.status_code == status


def test_lead_does_not_approve_their_own_request_and_may_withdraw_it(people):
    people.api("lead").engage(FINANCE)
    asked = release(people.api("lead"), **IMMEDIATE).json()["approval"]["id"]

    assert people.api("lead").post(f"/approvals/{asked}/approve").status_code == 403
    assert people.api("lead").post(f"/approvals/{asked}/deny").status_code == 200


def test_edited_request_is_decided_by_the_owner(people):
    people.api("stranger").engage(FINANCE)
    asked = release(people.api("stranger"), ask=True).json()["approval"]["id"]
    body = {"reason": "5xx below 0.1 % for an hour now"}
    edited = people.api("stranger").patch(f"/approvals/{asked}/", body).json()["id"]

    assert people.api("strange_approver").post(f"/approvals/{edited}/approve").status_code == 403
    assert people.api("approver").post(f"/approvals/{asked}/approve").status_code == 409
    assert people.api("approver").post(f"/approvals/{edited}/approve").status_code == 200
    assert state_of(FINANCE) == "ramping"


def test_second_person_for_the_global_switch_is_an_approver_of_the_root_team(people):
    people.api("stranger").engage("global:all")
    asked = release(people.api("root_approver"), "global:all").json()["approval"]["id"]
    path = f"/approvals/{asked}/approve"

    assert people.api("approver").post(path).status_code == 403
    assert people.api("admin").post(path).status_code == 403
    assert people.api("root_approver").post(path).status_code == 403
    other = signed_in(join(people.root, "approver", "ruth"))
    assert other.post(path).status_code == 200


def test_token_releases_what_the_teams_of_its_owner_own(people):
    people.api("stranger").engage(FINANCE)
    people.api("stranger").engage(CHAT)
    scopes = ("switches:write", "switches:read")

    assert release(with_token(*scopes, owner=people.stranger), CHAT).status_code == 403
    asked = release(with_token(*scopes, owner=people.stranger), CHAT, ask=True)
    assert asked.status_code == 403
    assert release(with_token(*scopes, owner=people.member), CHAT).status_code == 202
    assert not Approval.objects.exists()


def test_limited_token_stops_and_resolves_nothing_else(people):
    made, _ = tokens.create_token(
        name="ci",
        owner=people.member,
        scopes=OPERATOR_SCOPES,
        actor=people.member.as_actor(),
        now=db_now(),
    )
    limits = {"token_id": made.pk, "patterns": frozenset({"experiment:*"})}
    token = replace(people.member.as_actor(), type="token", **limits)
    trip = {"source": "ci", "fingerprint": "f", "reason": "p95 above 5 s for ten minutes"}
    alert = {"switch": CHAT, "fingerprint": "f"}
    now = db_now()
    stop = {"reason": WHY, "expires_in": "1h", "actor": token, "now": now}

    with pytest.raises(Forbidden):
        trips.request_trip(switch=CHAT, **trip, actor=token, now=now)
    with pytest.raises(Forbidden):
        resolution.resolve_alert(**alert, actor=token, now=now)
    with pytest.raises(Forbidden):
        services.engage(**stop, scope="feature", key="chat")
    services.engage(**stop, scope="experiment", key="chat")


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        ("strange_approver", {"break_glass": OWNERSHIP}, 202),
        ("admin", {"break_glass": OWNERSHIP}, 202),
        ("strange_approver", {"break_glass": OWNERSHIP, **IMMEDIATE}, 200),
        ("stranger", {"break_glass": OWNERSHIP}, 403),
        ("strange_lead", {"break_glass": OWNERSHIP}, 403),
        ("strange_approver", {"break_glass": {"rule": "two-person", "reason": WHY}}, 409),
    ],
)
def test_any_approver_breaks_the_glass_of_ownership(people, name, body, status):
    people.api("stranger").engage(CHAT)

    response = release(people.api(name), CHAT, **body)

    assert response.status_code == status
    assert Approval.objects.filter(kind="break_glass_review").exists() is (status < 300)


def test_review_of_the_broken_ownership_is_signed_by_the_owner(people):
    people.api("stranger").engage(CHAT)
    review = release(people.api("strange_approver"), CHAT, break_glass=OWNERSHIP).json()["review"]
    path = f"/approvals/{review['id']}/approve"

    assert people.api("strange_approver").post(path).status_code == 403
    assert people.api("admin").post(path).status_code == 403
    assert people.api("lead").post(path).status_code == 200


def test_ownership_and_the_second_person_are_both_overridden_by_name(people):
    people.api("stranger").engage("global:all")
    sue = people.api("strange_approver")

    refused = release(sue, "global:all", break_glass=OWNERSHIP)
    assert (refused.status_code, refused.json()["rule"]) == (409, "two-person")
    assert release(sue, "global:all", break_glass=BOTH).status_code == 202


def test_token_does_not_break_the_glass_of_ownership(people):
    people.api("stranger").engage(CHAT)
    token = with_token("switches:write", owner=people.strange_approver)

    assert release(token, CHAT, break_glass=OWNERSHIP).status_code == 403


def _grant(people, action, name="stranger", resource=CHAT):
    """Let a person do an action of the owner for an hour."""
    now, asker = db_now(), getattr(people, name).as_actor()
    asked = grants.ask(
        action=action, resource=resource, reason="5xx is back to zero", actor=asker, now=now
    )
    approvals.approve(asked.pk, comment="", actor=people.lead.as_actor(), now=now)


def test_permission_for_an_hour_does_not_break_the_glass(people):
    create_rule("at_least_one", "feature:*", "segment:*", name="one way")
    people.api("stranger").engage(CHAT)
    _grant(people, "release_at_once")
    stranger = people.api("stranger")

    glass = {"rule": "one way", "reason": WHY}
    assert release(stranger, CHAT, **IMMEDIATE, break_glass=glass).status_code == 403
    Rule.objects.all().delete()
    assert release(stranger, CHAT, **IMMEDIATE).status_code == 200


def test_permission_for_an_hour_does_not_make_a_second_person(people):
    people.api("member").engage(CHAT)
    plan = [{"percent": 5, "dwell_seconds": 0, "gates": [{"type": "manual"}]}, {"percent": 100}]
    started = release(people.api("lead"), CHAT, plan=plan).json()["ramp"]["id"]
    run_workers()
    _grant(people, "release_at_once")
    path, body = f"/ramps/{started}/advance", {"reason": "figures are flat since noon"}

    assert people.api("stranger").post(path, body).status_code == 403
    assert people.api("lead").post(path, body).status_code == 403
    assert people.api("approver").post(path, body).status_code == 200


def test_who_rotates_a_teams_token_does_not_approve_what_it_requests(people):
    create_rule("protected", FINANCE)
    token, _ = tokens.create_token(
        name="ci",
        owner=people.admin,
        team=people.payments,
        scopes=["switches:write"],
        actor=people.admin.as_actor(),
        now=db_now(),
    )
    lead = people.api("lead")
    text = lead.post(f"/tokens/{token.pk}/rotate", {}).json()["token"]
    program = Api(authorization=f"Bearer {text}")
    assert program.engage(FINANCE).status_code == 200

    path = f"/approvals/{release(program, **IMMEDIATE).json()['approval']['id']}/approve"

    assert lead.post(path).status_code == 403
    assert people.api("approver").post(path).status_code == 200


def test_lead_overrides_a_safety_rule_in_their_team_alone(people):
    create_rule("at_least_one", "feature:*", "segment:*", name="one way")
    glass = {"rule": "one way", "reason": WHY}
    people.api("stranger").engage(CHAT)

    assert release(people.api("member"), CHAT, break_glass=glass).status_code == 403
    assert release(people.api("lead"), CHAT, break_glass=glass).status_code == 202


@pytest.mark.parametrize(
    ("name", "may"),
    [
        ("member", {"pause", "resume", "abort"}),
        ("lead", {"advance", "pause", "resume", "abort"}),
        ("stranger", {"pause", "abort"}),
        ("strange_approver", {"pause", "abort"}),
        ("admin", {"pause", "abort"}),
        ("root_approver", {"advance", "pause", "resume", "abort"}),
    ],
)
def test_ramps_are_stopped_by_anyone_and_continued_by_the_owner(people, name, may):
    people.api("member").engage(CHAT)
    now, reason = db_now(), "seen in the figures of the last hour"
    ramp = services.release(
        scope="feature", key="chat", **SAFE, actor=people.member.as_actor(), now=now
    ).ramp
    actor, done = getattr(people, name).as_actor(), set()

    for verb in ("advance", "pause", "resume", "abort"):
        if verb == "resume" and "pause" not in done:
            continue
        try:
            getattr(actions, verb)(ramp_id=ramp.pk, reason=reason, actor=actor, now=now)
        except Forbidden as refused:
            assert refused.extra["owner"] == "payments"
        else:
            done.add(verb)

    assert done == may


def test_manual_gate_of_a_ramp_is_decided_by_the_owner(people):
    people.api("member").engage(CHAT)
    now = db_now()
    plan = [{"percent": 5, "gates": [{"type": "manual"}]}, {"percent": 100}]
    actor = people.member.as_actor()
    ramp = services.release(
        scope="feature", key="chat", **SAFE, plan=plan, actor=actor, now=now
    ).ramp
    gate = approvals.request_approval(
        kind=Approval.Kind.RAMP_GATE,
        target=f"{CHAT}#ramp-{ramp.pk}-0",
        summary="Ramp of feature:chat: release it",
        diff={"ramp": ramp.pk, "step": 0},
        reason="figures are flat",
        actor=actor,
        now=now,
    )

    for name in ("strange_approver", "admin", "member"):
        with pytest.raises(Forbidden):
            approvals.approve(gate.pk, comment="", actor=getattr(people, name).as_actor(), now=now)
    approved = approvals.approve(gate.pk, comment="", actor=people.lead.as_actor(), now=now)
    assert approved.state == "approved"


@pytest.mark.parametrize(
    ("name", "on_expiry", "left"),
    [
        ("stranger", "release", "hold"),
        ("stranger", "ramp", "hold"),
        ("member", "release", "release"),
        ("member", "ramp", "ramp"),
    ],
)
def test_stranger_who_engages_again_does_not_let_it_flow_sooner(people, name, on_expiry, left):
    people.api("member").engage(CHAT, on_expiry="hold")
    release(people.api("member"), CHAT)

    again = people.api(name).engage(CHAT, expires_in="15m", on_expiry=on_expiry)

    assert again.status_code == 200
    assert again.json()["on_expiry"] == left
    assert ("requires its owner" in again.json().get("notice", "")) is (left == "hold")


@pytest.mark.parametrize(
    ("name", "status"), [("member", 200), ("stranger", 403), ("admin", 200), ("lead", 200)]
)
def test_registration_is_edited_by_the_owner_and_by_admins(people, name, status):
    response = people.api(name).patch("/switches/feature/chat/", {"owner": "Payments"})

    assert response.status_code == status


@pytest.mark.parametrize(("name", "may"), [("member", True), ("stranger", False)])
def test_drills_are_scheduled_by_the_owner(people, name, may):
    switch = {"scope": "feature", "key": "chat"}
    actor, now = getattr(people, name).as_actor(), db_now()
    calls = (
        partial(drills.schedule_drill, **switch, every="7d", reason="before the sale weekend"),
        partial(drills.remove_schedule, **switch),
    )

    for call in calls:
        if may:
            call(actor=actor, now=now)
        else:
            with pytest.raises(Forbidden):
                call(actor=actor, now=now)


def test_rule_can_require_the_owner_to_stop(people):
    AuthorityRule.objects.create(action="engage", kind="feature", relation="owner", role="operator")

    assert people.api("stranger").engage(CHAT).status_code == 403
    assert people.api("stranger").engage("feature:nobodys").status_code == 200
    assert people.api("member").engage(CHAT).status_code == 200


def test_limited_token_changes_nothing_that_is_no_resource_of_it(people):
    token = replace(people.admin.as_actor(), type="token", patterns=frozenset({"service:core"}))

    for change in (
        partial(rules.propose_rule, fields={}),
        partial(drills.mark_instances, pattern="billing/*"),
        partial(drills.remove_mark, pattern="billing/*"),
    ):
        with pytest.raises(Forbidden, match="limited to service:core"):
            change(actor=token, now=db_now())


def test_refusal_page_names_the_owner_and_who_may_and_links_to_asking(people):
    people.api("member").engage(CHAT)
    ramp = release(people.api("member"), CHAT).json()["ramp"]["id"]

    html = people.api("stranger").client.get(f"/ramps/{ramp}/advance/")

    assert html.status_code == 403
    shown = html.content.decode()
    assert "Payments owns feature:chat. Only its members may release it at once." in shown
    assert "lee, amy or rita" in text(shown)
    assert "/ask/?action=release_at_once&amp;resource=feature%3Achat" in shown


def press(user, switch=CHAT, **fields):
    """Submit the release form as its page offered it; return the page and the response."""
    client = browser(user)
    path = f"/switches/{switch.replace(':', '/')}/release/"
    page = client.get(path).content.decode()
    ask = {"ask": "1"} if 'name="ask" value="1"' in page else {}
    return page, client.post(path, {**SAFE, "mode": "ramp", **ask, **fields})


def test_release_form_asks_the_owner(people):
    people.api("member").engage(CHAT)

    page, response = press(people.stranger)

    assert "Payments owns feature:chat. Only its members may release it." in text(page)
    assert "Request release by ramp" in page
    assert "amy" in text(page)
    assert "Break glass" not in page
    assert response.status_code == 302
    assert Approval.objects.get(kind="release").requester == people.stranger
    assert state_of(CHAT) == "engaged"


def test_release_form_of_the_owner_releases(people):
    people.api("stranger").engage(CHAT)

    page, _ = press(people.member)

    assert "Request release" not in page
    assert state_of(CHAT) == "ramping"


def test_release_form_offers_an_approver_to_break_the_glass_of_ownership(people):
    people.api("member").engage(CHAT)

    page, response = press(
        people.strange_approver,
        mode="",
        glass_rule="ownership",
        glass_reason=WHY,
        glass_mode="ramp",
    )

    assert 'value="ownership"' in page
    assert response.status_code == 302
    assert state_of(CHAT) == "ramping"


def test_lead_is_offered_to_release_at_once(people):
    people.api("stranger").engage(CHAT)

    page, _ = press(people.lead, mode="immediate")

    assert "Release feature:chat now" in page
    assert state_of(CHAT) == "released"


DIALOG = {"HX-Request": "true", "HX-Target": "dialog-body"}


def test_refusal_in_the_dialog_says_why_and_links_to_asking(people):
    people.api("member").engage(CHAT)
    ramp = release(people.api("member"), CHAT).json()["ramp"]["id"]

    response = people.api("stranger").client.get(f"/ramps/{ramp}/advance/", headers=DIALOG)

    html = response.content.decode()
    assert response.status_code == 403
    assert "<html" not in html
    assert "Only its members may release it at once." in html
    assert "Who can: lee, amy or rita." in text(html)
    assert "/ask/?action=release_at_once&amp;resource=feature%3Achat" in html


@pytest.mark.parametrize(
    ("name", "title"), [("stranger", "Ask to release feature:chat…"), ("member", "Release feature")]
)
def test_palette_offers_to_ask_for_the_release_of_what_another_team_owns(people, name, title):
    people.api("member").engage(CHAT)
    client = people.api(name).client

    found = text(client.get("/find/part/", {"q": "release feature:chat"}).content.decode())
    listed = text(client.get("/find/part/", {"q": "release"}).content.decode())

    assert title in found
    assert title.removesuffix("…") in listed


@pytest.mark.parametrize(("name", "is_counted"), [("lead", True), ("member", False)])
def test_navigation_counts_pending_approvals_for_a_lead(people, name, is_counted):
    people.api("member").engage(CHAT)
    release(people.api("stranger"), CHAT, ask=True)

    html = people.api(name).client.get("/teams/").content.decode()

    assert ("1 pending" in text(html)) == is_counted
