"""An edited request is a new one: the earlier one can't be approved any more."""

import pytest

from controlplane.accounts.tokens import services as tokens
from controlplane.core.actors import system_actor
from controlplane.core.approvals import services
from controlplane.core.approvals.models import Approval
from controlplane.core.approvals.risk import RiskFacts
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict
from controlplane.core.http.tests.callers import Api, as_role, person, signed_in, token_text
from controlplane.core.outbox.models import OutboxMessage

pytestmark = pytest.mark.django_db

GLOBAL = "/switches/global/all"
RELEASE = {"justification": "duplicate charges refunded, queue empty", "mode": "immediate"}
NEW = "charges refunded, queue empty, bank confirmed by phone"


@pytest.fixture
def kim():
    return signed_in(person("operator", "kim"))


@pytest.fixture
def waiting(kim):
    kim.engage("global:all")
    return kim.post(f"{GLOBAL}/release", RELEASE).json()["approval"]["id"]


def create_request(who, diff, **more):
    fields = {
        "kind": "rule_change",
        "target": "rule:payments",
        "summary": "Change the rule payments",
        "diff": diff,
        "reason": "one more may be stopped",
        "actor": who.as_actor(),
        "now": db_now(),
    }
    return services.request_approval(**{**fields, **more})


def test_edit_voids_the_old_request_and_asks_anew(kim, waiting):
    response = kim.patch(f"/approvals/{waiting}/", {"reason": NEW})

    assert response.status_code == 200
    new = response.json()
    assert (new["state"], new["reason"], new["replaces"]) == ("pending", NEW, waiting)
    assert new["id"] != waiting
    assert kim.get(f"/approvals/{waiting}/").json()["state"] == "void"


def test_click_on_what_was_seen_before_is_told_to_look_again(kim, waiting):
    new = kim.patch(f"/approvals/{waiting}/", {"reason": NEW}).json()["id"]
    newer = kim.patch(f"/approvals/{new}/", {"reason": f"{NEW}, twice"}).json()["id"]
    approver = as_role("approver")

    refused = approver.post(f"/approvals/{waiting}/approve", {})

    assert refused.status_code == 409
    assert "The request was edited. Review it again" in refused.json()["detail"]
    assert refused.json()["replaced_by"] == newer
    assert kim.get(f"{GLOBAL}/").json()["state"] == "engaged"
    assert approver.post(f"/approvals/{newer}/approve", {}).status_code == 200
    assert kim.get(f"{GLOBAL}/").json()["state"] == "released"


def test_only_who_asked_edits(waiting):
    refused = as_role("admin").patch(f"/approvals/{waiting}/", {"reason": NEW})

    assert refused.status_code == 403
    assert Approval.objects.get().state == "pending"


def test_owner_edits_what_their_token_asked():
    owner = person("operator", "kim")
    program = Api(x_api_key=token_text(owner, ["switches:write"]))
    program.engage("global:all")
    approval_id = program.post(f"{GLOBAL}/release", RELEASE).json()["approval"]["id"]

    assert signed_in(owner).patch(f"/approvals/{approval_id}/", {"reason": NEW}).status_code == 200


def test_token_edits_no_request_beyond_its_limits():
    owner = person("operator", "kim")
    asked = signed_in(owner)
    asked.engage("global:all")
    approval_id = asked.post(f"{GLOBAL}/release", RELEASE).json()["approval"]["id"]
    _, text = tokens.create_token(
        name="ci",
        owner=owner,
        scopes=["switches:write"],
        patterns=["experiment:*"],
        actor=system_actor("test"),
        now=db_now(),
    )

    refused = Api(x_api_key=text).patch(f"/approvals/{approval_id}/", {"reason": NEW})

    assert refused.status_code == 403
    assert "limited to experiment:*" in refused.json()["detail"]
    assert Approval.objects.get().state == "pending"


def test_edit_that_says_the_same_is_the_same_request(kim, waiting):
    response = kim.patch(f"/approvals/{waiting}/", {"reason": f" {RELEASE['justification']} "})

    assert response.json()["id"] == waiting
    assert Approval.objects.count() == 1


@pytest.mark.parametrize("reason", ["", "  ", "x" * 2001, 5, None])
def test_edit_without_a_readable_reason_is_refused(kim, waiting, reason):
    response = kim.patch(f"/approvals/{waiting}/", {"reason": reason})

    assert response.status_code == 400
    assert "reason" in response.json()["errors"]
    assert Approval.objects.get().state == "pending"


def test_decided_request_is_not_edited(kim, waiting):
    as_role("approver").post(f"/approvals/{waiting}/deny", {})

    response = kim.patch(f"/approvals/{waiting}/", {"reason": NEW})

    assert response.status_code == 409
    assert "denied by user:a-approver" in response.json()["detail"]


def test_edit_tells_that_the_old_one_is_over(by_bot, kim, waiting):
    new = kim.patch(f"/approvals/{waiting}/", {"reason": NEW}).json()["id"]

    message = OutboxMessage.objects.get(event="approval.decided")
    assert message.subject == f"approval:{waiting}"
    assert (message.payload["outcome"], message.payload["replaced_by"]) == (
        "void",
        new,
    )
    asked = OutboxMessage.objects.filter(event="approval.requested").order_by("id").last()
    assert asked.subject == f"approval:{new}"


def test_asking_for_the_same_again_is_the_one_that_waits():
    kim = person("admin", "kim")

    assert create_request(kim, {"n": [1, 2]}) == create_request(kim, {"n": [1, 2]})
    assert create_request(person("admin", "lee"), {"n": [1, 2]}).requested_by == "user:kim"


def test_asking_for_something_else_voids_ones_own():
    kim = person("admin", "kim")
    old = create_request(kim, {"n": [1, 2]})

    new = create_request(kim, {"n": [1, 3]})

    old.refresh_from_db()
    assert (old.state, new.state, new.replaces) == ("void", "pending", old)


def test_asking_for_the_same_with_another_reason_voids_ones_own():
    kim = person("admin", "kim")
    old = create_request(kim, {"n": [1, 2]})

    new = create_request(kim, {"n": [1, 2]}, reason="the second provider is back")

    old.refresh_from_db()
    assert (old.state, new.reason, new.replaces) == ("void", "the second provider is back", old)


def test_asking_for_something_else_than_somebody_who_waits_is_a_conflict():
    old = create_request(person("admin", "kim"), {"n": [1, 2]})

    with pytest.raises(Conflict, match=f"user:kim requested another change.*approval {old.pk}"):
        create_request(person("admin", "lee"), {"n": [1, 3]})


def test_facts_make_the_request_critical_and_its_time_short():
    kim, now = person("admin", "kim"), db_now()

    request = create_request(kim, {}, facts=RiskFacts(tags=frozenset({"destructive"})), now=now)

    assert request.risk == "critical"
    assert (request.expires_at - now).total_seconds() == 2 * 3600


def test_edited_reason_of_permanent_has_to_say_as_much_as_the_first(kim):
    approval_id = kim.engage("segment:finance", expires_in="permanent").json()["approval"]["id"]

    for vague in (".", "issue", "asdf asdf"):
        refused = kim.patch(f"/approvals/{approval_id}/", {"reason": vague})
        assert (refused.status_code, set(refused.json()["errors"])) == (400, {"reason"})
    page = kim.client.post(f"/approvals/{approval_id}/edit/", {"reason": "issue"})

    assert page.status_code == 400
    assert Approval.objects.get().reason != "issue"
    assert kim.patch(f"/approvals/{approval_id}/", {"reason": NEW}).status_code == 200


def test_edited_justification_of_a_release_may_be_brief_but_not_blank(kim, waiting):
    assert kim.patch(f"/approvals/{waiting}/", {"reason": "\u200b"}).status_code == 400
    assert kim.patch(f"/approvals/{waiting}/", {"reason": "ok"}).status_code == 200
