"""Tokens: hashed, scoped by their owner's role, expiring, revoked at once."""

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from controlplane.accounts.models.people import User
from controlplane.accounts.models.tokens import Credentials, Token
from controlplane.accounts.people import services as people
from controlplane.accounts.tokens import services
from controlplane.core.actors import system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput, Unauthenticated

pytestmark = pytest.mark.django_db
ACTOR = system_actor("test")


def person(username="olga", role="operator"):
    return User.objects.create_user(username, "correct horse battery", role=role)


def token_for(owner, scopes=("switches:read",), **more):
    return services.create_token(
        name="poller", owner=owner, scopes=scopes, actor=ACTOR, now=db_now(), **more
    )


def test_the_text_authenticates_and_the_secret_is_stored_nowhere():
    token, text = token_for(person())

    assert services.authenticate_token(text).pk == token.pk
    secret = text.split("_", 2)[2]
    with connection.cursor() as cursor:
        for table in ("core_token", "core_auditentry"):
            cursor.execute(f"SELECT count(*) FROM {table} t WHERE t::text LIKE %s", [f"%{secret}%"])
            assert cursor.fetchone() == (0,)


@pytest.mark.parametrize("spoil", [lambda t: t + "x", lambda t: t[:-1], lambda t: t.upper()])
def test_a_changed_text_is_refused(spoil):
    _, text = token_for(person())

    with pytest.raises(Unauthenticated):
        services.authenticate_token(spoil(text))


@pytest.mark.parametrize(
    "text", ["", "sg_", "sg__", "sg_a_", "xx_a_b", "sg_\ud800_\ud800", "a" * 9999]
)
def test_texts_of_no_token_are_refused(text):
    with pytest.raises(Unauthenticated):
        services.authenticate_token(text)


def test_expired_revoked_and_orphaned_tokens_are_refused():
    now = db_now()
    owner = person()
    _, expired = token_for(owner, lifetime=timedelta(seconds=-1))
    revoked_token, revoked = token_for(owner)
    services.revoke_token(token=revoked_token, actor=ACTOR, now=now)
    person("root", "admin")
    _, orphaned = token_for(person("gone"))
    people.change_user(
        user=User.objects.get(username="gone"), is_active=False, actor=ACTOR, now=now
    )

    for text in (expired, revoked, orphaned):
        with pytest.raises(Unauthenticated):
            services.authenticate_token(text)


def test_a_token_may_do_no_more_than_its_owner_now_may():
    owner = person(role="operator")
    token, _ = token_for(owner, scopes=["switches:read", "switches:write"])
    person("root", "admin")

    people.change_user(user=owner, role="viewer", actor=ACTOR, now=db_now())

    token.refresh_from_db()
    assert services.find_allowed_scopes(token) == {"switches:read"}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"scopes": []}, "scopes"),
        ({"scopes": ["switches:own"]}, "scopes"),
        ({"name": "  "}, "name"),
        ({"name": "n" * 121}, "name"),
    ],
)
def test_wrong_requests_name_the_field(changes, field):
    arguments = {"name": "poller", "scopes": ["switches:read"], **changes}

    with pytest.raises(InvalidInput) as refused:
        services.create_token(owner=person(), actor=ACTOR, now=db_now(), **arguments)

    assert field in refused.value.errors
    assert not Token.objects.exists()


def test_a_token_for_scim_is_for_nothing_else():
    admin = person(role="admin")
    with pytest.raises(InvalidInput, match="scim can't be combined"):
        token_for(admin, scopes=["scim", "switches:read"])

    assert token_for(admin, scopes=["scim"])[0].scopes == ["scim"]


def test_a_viewer_can_not_own_a_writing_token():
    with pytest.raises(InvalidInput, match="may not"):
        token_for(person(role="viewer"), scopes=["switches:write"])


def test_whatever_decides_a_sign_in_moves_the_revision_and_use_does_not():
    def revision():
        return Credentials.objects.get().revision

    owner = person()
    person("root", "admin")
    before = revision()
    token, text = token_for(owner)
    assert revision() > before

    before = revision()
    services.authenticate_token(text)
    assert Token.objects.get().last_used_at is not None
    assert revision() == before

    people.change_user(user=owner, is_active=False, actor=ACTOR, now=db_now())
    assert revision() > before

    before = revision()
    services.revoke_token(token=token, actor=ACTOR, now=db_now())
    assert revision() > before


def test_the_last_admin_can_not_be_lost():
    root = person("root", "admin")

    with pytest.raises(Conflict):
        people.change_user(user=root, role="viewer", actor=ACTOR, now=db_now())
    with pytest.raises(Conflict):
        people.change_user(user=root, is_active=False, actor=ACTOR, now=db_now())

    assert User.objects.get(username="root").is_admin


def test_command_prints_the_token_alone_on_the_last_line(capsys):
    person("root", "admin")

    call_command(
        "token", "create", "poller", "--scopes", "switches:read,audit:read", "--expires", "90d"
    )

    output = capsys.readouterr()
    text = output.out.splitlines()[-1]
    assert output.err.startswith("Created token poller (owner root, ")
    token = services.authenticate_token(text)
    assert token.owner.username == "root"
    assert token.scopes == ["audit:read", "switches:read"]
    assert token.expires_at - token.created_at == timedelta(days=90)
    assert AuditEntry.objects.get(action="token.created").actor_type == "system"


def test_command_refuses_clearly():
    person("root", "admin")

    with pytest.raises(CommandError, match="Unknown: nonsense"):
        call_command("token", "create", "x", "--scopes", "nonsense")
    with pytest.raises(CommandError, match="no user nobody"):
        call_command("token", "create", "x", "--scopes", "switches:read", "--owner", "nobody")
    with pytest.raises(CommandError, match="--expires"):
        call_command("token", "create", "x", "--scopes", "switches:read", "--expires", "soon")


@pytest.mark.parametrize(("role", "warned"), [("admin", True), ("operator", False)])
def test_command_warns_of_the_powers_of_an_admins_token(role, warned, capsys):
    person("root", role)

    call_command("token", "create", "x", "--scopes", "dlq:write", "--owner", "root")

    assert ("it can also read unredacted dead letters" in capsys.readouterr().err) == warned


def test_command_limits_a_token_to_services(capsys):
    person("root", "admin")

    call_command(
        "token", "create", "poller", "--scopes", "report:write", "--services", "gateway, core"
    )

    output = capsys.readouterr()
    text = output.out.splitlines()[-1]
    assert output.err.startswith("Created token poller (owner root, ")
    assert services.authenticate_token(text).services == ["core", "gateway"]
    assert '"services":["core","gateway"]' in AuditEntry.objects.get(action="token.created").after
    call_command("token", "list")
    assert "only for core,gateway" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["a/b", "a b", "", "token:x", "x" * 121, "a\n"])
def test_a_token_for_what_is_no_service_is_refused(name):
    with pytest.raises(InvalidInput) as caught:
        token_for(person(), limit_to=["core", name])

    assert set(caught.value.errors) == {"services"}


def test_a_token_for_too_many_services_is_refused():
    with pytest.raises(InvalidInput) as caught:
        token_for(person(), limit_to=[f"s{number}" for number in range(101)])

    assert set(caught.value.errors) == {"services"}


def test_whoever_changes_the_services_of_a_token_moves_the_revision():
    token, _ = token_for(person())
    before = Credentials.objects.get().revision

    Token.objects.filter(pk=token.pk).update(services=["core"])

    assert Credentials.objects.get().revision > before
