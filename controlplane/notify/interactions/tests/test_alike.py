"""Decisions follow the same rules over the API, on the page and in Slack."""

import pytest
from django.db import transaction

from controlplane.core.approvals import reviews
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import Api, person, signed_in, token_text

from .slack_requests import SlackUser

pytestmark = pytest.mark.django_db(transaction=True)

RELEASE = {"justification": "duplicate charges refunded, queue empty", "mode": "immediate"}
RULES = {
    # who presses, what, on what: the state afterwards
    ("approver", "approve", "request"): "approved",
    ("approver", "deny", "request"): "denied",
    ("admin", "approve", "request"): "approved",
    ("operator", "approve", "request"): "pending",
    ("operator", "deny", "request"): "pending",
    ("viewer", "approve", "request"): "pending",
    ("viewer", "deny", "request"): "pending",
    ("requester", "approve", "request"): "pending",
    ("requester", "deny", "request"): "denied",
    ("owner", "approve", "of a token"): "pending",
    ("approver", "approve", "of a token"): "approved",
    ("approver", "approve", "expired"): "pending",
    ("approver", "deny", "expired"): "pending",
    ("approver", "approve", "edited"): "void",
    ("approver", "approve", "review"): "approved",
    ("approver", "deny", "review"): "pending",
    ("requester", "approve", "review"): "pending",
    ("requester", "deny", "review"): "pending",
    ("operator", "approve", "review"): "pending",
}


def over_the_api(user, verb, pk, slack):
    signed_in(user).post(f"/approvals/{pk}/{verb}", {})


def on_the_page(user, verb, pk, slack):
    signed_in(user).client.post(f"/approvals/{pk}/{verb}/", {"comment": "not while it pages"})


def in_slack(user, verb, pk, slack):
    user.slack_user_id = f"U{user.pk}X"
    user.save(update_fields=["slack_user_id"])
    assert SlackUser(user.slack_user_id, slack.url).press(verb, {"approval": pk})


def create_request(what, requester):
    """Return the id of a request by `requester`, who may approve."""
    if what == "review":
        return _broken_glass(requester).pk
    api = signed_in(requester)
    if what == "of a token":
        api = Api(x_api_key=token_text(requester, ["switches:write"]))
    api.engage("global:all")
    pk = api.post("/switches/global/all/release", RELEASE).json()["approval"]["id"]
    if what == "edited":
        api.patch(f"/approvals/{pk}/", {"reason": "refunded, and the bank says so"})
    if what == "expired":
        Approval.objects.update(expires_at=db_now())
    return pk


@transaction.atomic
def _broken_glass(who):
    return reviews.open_review(
        rule="payments",
        reason="both charge twice",
        target="segment:finance",
        diff={},
        actor=who.as_actor(),
        now=db_now(),
    )


@pytest.mark.parametrize("way", [over_the_api, on_the_page, in_slack])
@pytest.mark.parametrize(("who", "verb", "what"), RULES)
def test_every_way_obeys_the_same_rules(slack, way, who, verb, what):
    requester = person("admin", "kim")
    pk = create_request(what, requester)
    presser = requester if who in ("requester", "owner") else person(who, "lee")

    way(presser, verb, pk, slack)

    assert Approval.objects.get(pk=pk).state == RULES[who, verb, what]
