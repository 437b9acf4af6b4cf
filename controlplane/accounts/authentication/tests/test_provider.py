"""Single sign-on against a real local provider: accepted and rejected identities."""

import dataclasses
import time
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client

from controlplane.accounts.models import DirectoryGroup, DirectoryUser, Membership, Team
from controlplane.accounts.models.people import User
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http import confirmation
from controlplane.core.http.tests.callers import person

from .fake_provider import CLIENT, SECRET, new_key
from .people import kim, with_app

pytestmark = pytest.mark.django_db
BACK = "/sign-in/provider/callback/"


def leave(client, **more):
    return client.post("/sign-in/provider/", more)


def come_back(client, provider, response):
    state, code = provider.authorized(response["Location"])
    return client.get(BACK, {"state": state, "code": code})


def sign_in(client, provider, **more):
    return come_back(client, provider, leave(client, **more))


def is_in(client):
    return client.get("/preferences/").status_code == 200


def test_new_person_is_made_with_the_role_of_their_group(client, provider):
    response = sign_in(client, provider, next="/audit/")

    assert response["Location"] == "/audit/"
    user = User.objects.get()
    assert (user.username, user.role, user.email) == ("kim", "operator", "kim@example.org")
    assert not user.has_usable_password()
    actions = list(AuditEntry.objects.order_by("id").values_list("action", flat=True))
    assert actions == ["user.created", "user.linked", "session.started"]


def test_who_leaves_is_asked_with_state_nonce_and_a_challenge(client, provider):
    parameters = parse_qs(urlsplit(leave(client)["Location"]).query)

    assert parameters["code_challenge_method"] == ["S256"]
    assert parameters["client_id"] == [CLIENT]
    assert parameters["nonce"]
    assert parameters["state"]
    assert parameters["redirect_uri"][0].endswith(BACK)


def test_second_time_it_is_the_same_person_also_under_another_name(client, provider):
    sign_in(client, provider)
    provider.person |= {"preferred_username": "someone-else", "email": "new@example.org"}
    sign_in(Client(), provider)

    assert User.objects.get().username == "kim"


def test_role_follows_the_groups_of_each_sign_in_and_the_strongest_counts(client, provider):
    sign_in(client, provider)
    provider.person["groups"] = ["ops", "leads", "nobody-knows"]
    sign_in(Client(), provider)

    assert User.objects.get().role == "approver"


def test_memberships_of_teams_follow_the_groups_of_each_sign_in(client, provider):
    now = db_now()
    Team.objects.create(slug="payments", name="Payments", member_group="ops", created_at=now)
    Team.objects.create(slug="search", name="Search", lead_group="search", created_at=now)
    sign_in(client, provider)
    assert list(Membership.objects.values_list("team__slug", "role")) == [("payments", "member")]

    provider.person["groups"] = ["leads", "search"]
    sign_in(Client(), provider)

    assert list(Membership.objects.values_list("team__slug", "role")) == [("search", "lead")]


def test_groups_sent_by_scim_count_instead_of_those_of_the_sign_in(client, provider):
    now = db_now()
    Team.objects.create(slug="payments", name="Payments", member_group="leads", created_at=now)
    user = kim(email="kim@example.org")
    DirectoryUser.objects.create(user=user, created_at=now, changed_at=now)
    group = DirectoryGroup.objects.create(name="leads", created_at=now, changed_at=now)
    group.members.add(user)
    provider.person["groups"] = []

    sign_in(client, provider)

    assert is_in(client)
    assert User.objects.get().role == "approver"
    assert Membership.objects.get().team.slug == "payments"


@pytest.mark.parametrize(
    ("external_id", "is_found"), [("u-1", True), ("7f3a", True), ("u-2", False), ("", False)]
)
def test_person_provisioned_with_the_same_id_is_found(client, provider, external_id, is_found):
    now = db_now()
    user = person("viewer", "kim.park")
    DirectoryUser.objects.create(user=user, external_id=external_id, created_at=now, changed_at=now)
    group = DirectoryGroup.objects.create(name="ops", created_at=now, changed_at=now)
    group.members.add(user)
    provider.claims["oid"] = "7f3a"
    provider.person["email_verified"] = False

    sign_in(client, provider)

    assert User.objects.count() == (1 if is_found else 2)
    assert SocialAccount.objects.filter(user=user).exists() is is_found


def test_last_admin_stays_one(client, provider):
    provider.person["groups"] = ["root"]
    sign_in(client, provider)
    provider.person["groups"] = ["ops"]
    browser = Client()
    sign_in(browser, provider)

    assert is_in(browser)
    assert User.objects.get().role == "admin"


@pytest.mark.parametrize("groups", [[], ["strangers"], None, "opsx", {"ops": 1}, [["ops"]]])
def test_who_has_no_known_group_is_refused_on_a_page_that_says_so(client, provider, groups):
    provider.person["groups"] = groups

    response = sign_in(client, provider)

    assert response.status_code == 403
    assert "none of your groups" in response.content.decode()
    assert not User.objects.exists()
    assert not is_in(client)


def test_checked_address_leads_to_the_account_an_admin_made(client, provider):
    user = kim(email="Kim@Example.org")

    sign_in(client, provider)

    assert SocialAccount.objects.get().user_id == user.pk
    assert User.objects.count() == 1


@pytest.mark.parametrize("verified", [False, None, "true", 1])
def test_unchecked_address_never_leads_to_somebody_elses_account(client, provider, verified):
    user = kim(email="kim@example.org")
    provider.person["email_verified"] = verified

    sign_in(client, provider)

    other = SocialAccount.objects.get().user
    assert other.pk != user.pk
    assert (other.username, other.email) == ("kim-2", "")


def test_name_alone_never_leads_to_somebody_elses_account(client, provider):
    admin = kim("admin")

    sign_in(client, provider)

    assert SocialAccount.objects.get().user_id != admin.pk


def test_account_that_is_linked_is_not_given_to_a_second_person(client, provider):
    sign_in(client, provider)
    provider.person["sub"] = "u-2"

    response = sign_in(Client(), provider)

    assert response.status_code == 403
    assert User.objects.count() == 1


def test_deactivated_person_is_refused(client, provider):
    sign_in(client, provider)
    User.objects.update(is_active=False)
    browser = Client()

    assert sign_in(browser, provider).status_code == 403
    assert not is_in(browser)


FORGED = {
    "nonce of another": {"claims": {"nonce": "planted"}},
    "no nonce": {"claims": {"nonce": None}},
    "other audience": {"claims": {"aud": "another-client"}},
    "several audiences": {"claims": {"aud": [CLIENT, "another-client"]}},
    "other issuer": {"claims": {"iss": "https://elsewhere.example"}},
    "expired": {"claims": {"exp": int(time.time()) - 3600}},
    "no end": {"claims": {"exp": None}},
    "of the future": {"claims": {"iat": int(time.time()) + 7200}},
    "somebody else": {"claims": {"sub": "u-9"}},
    "other key": {"faults": {"key": new_key()}},
    "unknown key": {"faults": {"kid": "two"}},
    "shared secret": {"faults": {"key": SECRET * 2, "algorithm": "HS256"}},
    "not signed": {"faults": {"key": None, "algorithm": "none"}},
    "no token": {"faults": {"token": "x.y.z"}},
    "says it is another": {"faults": {"issuer": "https://elsewhere.example"}},
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_what_can_not_be_believed_lets_nobody_in(client, provider, forged):
    response = leave(client)  # The issuer's description may be wrong already there.
    provider.claims, provider.faults = forged.get("claims", {}), forged.get("faults", {})

    response = come_back(client, provider, response)

    assert response.status_code == 502
    assert not is_in(client)
    assert not User.objects.exists()


def test_code_that_was_used_opens_nothing(client, provider):
    left = leave(client)
    state, code = provider.authorized(left["Location"])
    other = Client()
    another = parse_qs(urlsplit(leave(other)["Location"]).query)["state"][0]
    client.get(BACK, {"state": state, "code": code})

    assert other.get(BACK, {"state": another, "code": code}).status_code == 502
    assert Client().get(BACK, {"state": state, "code": code}).status_code == 502
    assert not is_in(other)


def test_code_of_another_browser_opens_nothing(client, provider):
    state, code = provider.authorized(leave(client)["Location"])
    victim = Client()

    assert victim.get(BACK, {"state": state, "code": code}).status_code == 502
    assert not is_in(victim)


@pytest.mark.parametrize("query", [{}, {"state": "x"}, {"error": "access_denied"}])
def test_odd_ways_back_end_on_a_page(client, provider, query):
    assert client.get(BACK, query).status_code == 502


def test_provider_that_leads_elsewhere_is_not_followed(client, provider):
    left = leave(client)
    provider.faults = {"redirect": f"{provider.issuer}/elsewhere"}

    assert come_back(client, provider, left).status_code == 502
    assert "/elsewhere" not in provider.asked


def test_provider_that_hangs_is_given_up(client, provider, settings):
    settings.SOCIALACCOUNT_REQUESTS_TIMEOUT = 0.3
    provider.faults = {"hang": 1.5}
    began = time.monotonic()

    response = leave(client)

    assert response.status_code == 502
    assert time.monotonic() - began < 1.4


def test_without_a_provider_there_is_no_such_way(client, settings):
    settings.OIDC = dataclasses.replace(settings.OIDC, issuer="")

    assert leave(client).status_code == 404
    assert client.get(BACK).status_code == 404
    assert "sign-in/provider" not in client.get("/sign-in/").content.decode()


def test_link_of_another_site_does_not_begin_it(client, provider):
    assert client.get("/sign-in/provider/").status_code == 405
    assert leave(Client(enforce_csrf_checks=True)).status_code == 403


def test_tokens_of_the_provider_are_kept_nowhere(client, provider, caplog):
    sign_in(client, provider)
    kept = f"{dict(client.session)} {list(SocialAccount.objects.values())} {caplog.text}"

    assert "an-access-token" not in kept
    assert SECRET not in kept


@pytest.mark.parametrize(
    ("auth_time", "is_asked"),
    [(lambda: 1, True), (lambda: int(time.time()), False), (lambda: None, False)],
    ids=["long ago", "just now", "unsaid"],
)
def test_signing_in_confirms_as_of_when_the_provider_asked(client, provider, auth_time, is_asked):
    sign_in(client, provider)
    client.post("/sign-out/")
    provider.claims = {"auth_time": auth_time()}

    sign_in(client, provider)

    assert is_in(client)
    assert (client.get("/preferences/security/app/").status_code == 302) is is_asked


def test_who_leaves_makes_the_provider_say_when_it_asked(client, provider):
    parameters = parse_qs(urlsplit(leave(client)["Location"]).query)

    assert int(parameters["max_age"][0]) > 30 * 24 * 3600
    assert "prompt" not in parameters


def long_ago(client):
    session = client.session
    session[confirmation.KEY] = 0
    session.save()


def test_provider_can_be_asked_again(client, provider):
    sign_in(client, provider)
    long_ago(client)

    left = client.post("/confirm/provider/", {"next": "/audit/"})
    parameters = parse_qs(urlsplit(left["Location"]).query)
    response = come_back(client, provider, left)

    assert (parameters["prompt"], parameters["max_age"]) == (["login"], ["0"])
    assert response["Location"] == "/audit/"
    assert client.session[confirmation.KEY] > 0


@pytest.mark.parametrize(
    ("amr", "status"), [(["pwd"], 403), (["pwd", "mfa"], 302)], ids=["password", "factor"]
)
def test_provider_confirms_who_has_a_second_factor_only_by_one(client, provider, amr, status):
    sign_in(client, provider)
    with_app(User.objects.get())
    long_ago(client)
    left = client.post("/confirm/provider/")
    provider.claims = {"amr": amr}

    assert come_back(client, provider, left).status_code == status
    assert (client.session[confirmation.KEY] > 0) is (status == 302)


@pytest.mark.parametrize(
    "claims",
    [{"auth_time": 1}, {"auth_time": None}, {"sub": "u-2"}],
    ids=["long ago", "never", "who"],
)
def test_provider_that_did_not_ask_anew_or_asked_another_confirms_nothing(client, provider, claims):
    sign_in(client, provider)
    long_ago(client)
    left = client.post("/confirm/provider/")
    provider.claims = claims
    if "sub" in claims:
        provider.person["sub"] = claims["sub"]

    assert come_back(client, provider, left).status_code == 403
    assert client.session[confirmation.KEY] == 0
