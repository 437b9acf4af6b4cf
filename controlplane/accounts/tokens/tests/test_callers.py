"""The services in whose names tokens are used: page, API, *Needs attention*, and retention."""

import json
from datetime import timedelta

import pytest

from controlplane.accounts.models import Token, TokenCaller
from controlplane.accounts.tokens import services
from controlplane.accounts.tokens.attention import list_refused_tokens
from controlplane.accounts.tokens.retention_rules import TOKEN_CALLERS
from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role, browser_of, person
from controlplane.core.retention import purge

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def token():
    made, _ = services.create_token(
        name="gateway, production",
        owner=person("admin", "root"),
        scopes=["report:write"],
        actor=system_actor("test"),
        now=db_now(),
    )
    return made


def call(token, service, used=None, refused=None):
    now = db_now()
    return TokenCaller.objects.create(
        token=token,
        service=service,
        used_at=None if used is None else now - used,
        refused_at=None if refused is None else now - refused,
    )


def test_api_lists_callers(token):
    used = call(token, "gateway", used=HOUR)
    refused = call(token, "core", refused=HOUR)

    (shown,) = as_role("admin").get("/tokens/").json()["results"]

    assert [(one["service"], bool(one["used_at"])) for one in shown["callers"]] == [
        ("core", False),
        ("gateway", True),
    ]
    assert shown["callers"][0]["refused_at"] > str(refused.refused_at.year)
    assert json.dumps(shown["callers"][1]["used_at"])[1:5] == str(used.used_at.year)


def test_page_lists_callers_with_few_queries(token, django_assert_max_num_queries):
    for number in range(10):
        call(token, f"gateway-{number}", used=HOUR)
    call(token, "core", used=2 * HOUR, refused=HOUR)
    browser = browser_of(token.owner)
    browser.get("/tokens/")

    with django_assert_max_num_queries(12):
        html = " ".join(browser.get("/tokens/").content.decode().split())

    assert "gateway-0" in html
    assert "another team owns it" in html
    assert "and 3 more" in html


def test_refused_token_needs_attention_until_it_is_accepted_or_an_hour_has_passed(token):
    caller = call(token, "core", used=2 * HOUR, refused=timedelta(minutes=1))

    (item,) = list_refused_tokens(db_now())
    assert (item.resource, item.kind) == ("service:core", "token_refused")
    assert "gateway, production" in item.detail
    assert list_refused_tokens(db_now() + HOUR) == []

    caller.used_at = db_now()
    caller.save()
    assert list_refused_tokens(db_now()) == []


def test_several_tokens_for_one_service_are_one_item(token):
    call(token, "core", refused=timedelta(minutes=1))
    Token.objects.filter(pk=token.pk).update(prefix="other")
    again, _ = services.create_token(
        name="batch",
        owner=token.owner,
        scopes=["report:write"],
        actor=system_actor("test"),
        now=db_now(),
    )
    call(again, "core", refused=timedelta(minutes=2))

    (item,) = list_refused_tokens(db_now())

    assert "batch, gateway, production" in item.detail


def test_callers_are_forgotten_after_thirty_days(token):
    call(token, "old", used=timedelta(days=31), refused=timedelta(days=40))
    call(token, "new", used=timedelta(days=40), refused=timedelta(days=29))

    assert purge([TOKEN_CALLERS], db_now()) == 1
    assert TokenCaller.objects.get().service == "new"
