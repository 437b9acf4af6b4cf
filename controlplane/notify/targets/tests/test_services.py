"""Creating, changing and removing targets: validation, stored values and audit."""

import json
from datetime import UTC, datetime
from functools import partial

import pytest

from controlplane.accounts.models.people import User
from controlplane.core.actors import system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden, InvalidInput
from controlplane.core.escalations import services as escalation
from controlplane.core.http.tests.callers import person
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.models.targets import Target
from controlplane.notify.targets import directory, reach, routing, services
from controlplane.notify.targets.fields import TargetRequest

from .people import add, an_admin

pytestmark = pytest.mark.django_db

HOOK = "https://1.1.1.1/hooks/verysecretpath?key=alsosecret"


@pytest.fixture
def now():
    return db_now()


def wrong(target_request, target=None):
    """Return the names of the rejected fields."""
    write = {
        "asked": target_request,
        "actor": an_admin(f"a{User.objects.count()}"),
        "now": db_now(),
    }
    change = (
        partial(services.change_target, target_id=target.pk) if target else services.create_target
    )
    with pytest.raises(InvalidInput) as refused:
        change(**write)
    return set(refused.value.errors)


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_only_an_admin_changes_anything(role, now):
    actor = person(role).as_actor()
    slack = Target.objects.get(name="slack")

    for call in (
        lambda: services.create_target(asked=TargetRequest("x", "person"), actor=actor, now=now),
        lambda: services.change_target(
            target_id=slack.pk, asked=TargetRequest("x", "channel"), actor=actor, now=now
        ),
        lambda: services.remove_target(target_id=slack.pk, actor=actor, now=now),
        lambda: services.send_test(target_id=slack.pk, actor=actor, now=now),
        lambda: services.add_route(
            event="*", scope="", severity="", target="slack", actor=actor, now=now
        ),
        lambda: services.remove_route(route_id=1, actor=actor, now=now),
    ):
        with pytest.raises(Forbidden):
            call()
    with pytest.raises(Forbidden):
        services.create_target(asked=TargetRequest("x", "person"), actor=system_actor("x"), now=now)


def test_names_of_any_script_are_kept_and_are_one_however_typed(now):
    target = add("  당직 엔지니어 🌙 ")

    assert target.name == "당직 엔지니어 🌙"
    assert wrong(TargetRequest("당직 엔지니어 🌙", "person")) == {"name"}


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        (TargetRequest("", "person"), {"name"}),
        (TargetRequest("x" * 81, "person"), {"name"}),
        (TargetRequest("a\nb", "person"), {"name"}),
        (TargetRequest("a", "robot"), {"kind"}),
        (TargetRequest("a", "person", email="no"), {"email"}),
        (TargetRequest("a", "person", user="nobody"), {"user"}),
        (TargetRequest("a", "person", slack_user_id="@kim"), {"slack_user_id"}),
        (TargetRequest("a", "channel", address="pager:7"), {"address"}),
        (TargetRequest("a", "channel", address="slack:ops"), {"address"}),
        (TargetRequest("a", "channel", address="email:no"), {"address"}),
        (TargetRequest("a", "channel", address="webhook"), {"webhook_url"}),
        (
            TargetRequest("a", "channel", address="slack", settings={"webhook_url": HOOK}),
            {"webhook_url"},
        ),
        (
            TargetRequest(
                "a",
                "channel",
                address="webhook",
                settings={"webhook_url": "http://169.254.169.254/"},
            ),
            {"webhook_url"},
        ),
        (TargetRequest("a", "channel", address="slack:#a|b"), {"address"}),
        (TargetRequest("a", "channel", address="slack:#a&b"), {"address"}),
        (
            TargetRequest("a", "channel", address="webhook", settings={"webhook_url": "https://."}),
            {"webhook_url"},
        ),
        (
            TargetRequest(
                "a", "channel", address="webhook", settings={"webhook_url": "https://a..b/"}
            ),
            {"webhook_url"},
        ),
        (
            TargetRequest(
                "a",
                "channel",
                address="webhook",
                settings={"webhook_url": f"https://{'a' * 64}.org/"},
            ),
            {"webhook_url"},
        ),
        (TargetRequest("a", "on_call", rotation_days=0), {"rotation_days"}),
        (TargetRequest("a", "on_call", members=["nobody"]), {"members", "rotation_starts_at"}),
        (TargetRequest("a", "on_call", time_zone="Mars/Base"), {"time_zone"}),
        (TargetRequest("a", "on_call", rotation_days=999), {"rotation_days"}),
        (TargetRequest("a", "escalation"), {"steps"}),
        (TargetRequest("a", "escalation", steps=[(5, "slack"), (5, "slack")]), {"steps"}),
        (TargetRequest("a", "escalation", steps=[(0, "critical")]), {"steps"}),
        (TargetRequest("a", "escalation", steps=[(0, 999_999)]), {"steps"}),
    ],
)
def test_wrong_field_is_named(values, fields):
    assert wrong(values) == fields


def test_webhook_secret_is_returned_once_and_never_told_again(now):
    admin = an_admin()
    target_request = TargetRequest(
        "receiver", "channel", address="webhook", settings={"webhook_url": HOOK}
    )

    target, secret = services.create_target(asked=target_request, actor=admin, now=now)
    kept, none = services.change_target(
        target_id=target.pk,
        asked=TargetRequest("receiver", "channel", description="moved", address="webhook"),
        actor=admin,
        now=now,
    )
    _, another = services.change_target(
        target_id=target.pk,
        asked=TargetRequest(
            "receiver", "channel", address="webhook", settings={"new_secret": True}
        ),
        actor=admin,
        now=now,
    )

    assert secret.text.startswith("whsec_")
    assert none is None
    assert kept.webhook_url == HOOK
    assert another not in (None, secret)
    kept.refresh_from_db()
    assert kept.signing_secret == another.text
    assert another.text.removeprefix("whsec_") not in kept.webhook_secret
    trail = json.dumps(list(AuditEntry.objects.values("action", "before", "after")))
    assert "secretpath" not in trail
    assert "alsosecret" not in trail
    assert secret.text not in trail
    assert another.text not in trail
    assert "https://1.1.1.1/" in trail


def test_webhook_secret_of_before_they_were_sealed_is_sealed_by_the_next_change(now):
    admin = an_admin()
    target_request = TargetRequest(
        "receiver", "channel", address="webhook", settings={"webhook_url": HOOK}
    )
    target, secret = services.create_target(asked=target_request, actor=admin, now=now)
    Target.objects.filter(pk=target.pk).update(webhook_secret=secret.text)

    changed, _ = services.change_target(
        target_id=target.pk, asked=target_request, actor=admin, now=now
    )

    changed.refresh_from_db()
    assert changed.signing_secret == secret.text
    assert not changed.webhook_secret.startswith("whsec_")


def test_webhook_secret_sealed_by_a_key_that_is_gone_can_not_be_read(now, settings):
    target_request = TargetRequest(
        "receiver", "channel", address="webhook", settings={"webhook_url": HOOK}
    )
    target, secret = services.create_target(asked=target_request, actor=an_admin(), now=now)

    before, settings.SECRET_KEY = settings.SECRET_KEY, "another"
    assert target.signing_secret == ""

    settings.SECRET_KEY_FALLBACKS = [before]
    assert target.signing_secret == secret.text


@pytest.mark.parametrize(
    "address", ["slack:#배포-알림", "slack:#हिन्दी", "slack:#ops_1", "slack:C024"]
)
def test_channel_of_any_script_is_an_address(address, now):
    assert add("a", "channel", address=address).address == address


def test_host_is_looked_up_before_the_transaction_and_not_in_it(now):
    target_request = TargetRequest(
        "a", "channel", address="webhook", settings={"webhook_url": "https://localhost/hook"}
    )

    # Nothing but a look-up tells where a name leads: in the transaction there is none.
    assert services.create_target(asked=target_request, actor=an_admin(), now=now)[0].webhook_url
    with pytest.raises(InvalidInput) as refused:
        services.look_up({"webhook_url": "https://localhost/hook"})
    assert set(refused.value.errors) == {"webhook_url"}


def test_what_is_used_stays_and_says_by_what(now):
    for name, user in (("on-call", "critical"), ("slack", "the route for *")):
        with pytest.raises(Conflict, match=user.replace("*", r"\*")):
            services.remove_target(
                target_id=Target.objects.get(name=name).pk, actor=an_admin(name), now=now
            )
    with pytest.raises(Conflict):
        services.remove_target(
            target_id=Target.objects.get(name="info").pk, actor=an_admin(), now=now
        )


def test_unused_is_removed_and_the_trail_tells(now):
    target = add("kim")

    services.remove_target(target_id=target.pk, actor=an_admin(), now=now)

    assert not Target.objects.filter(name="kim").exists()
    assert AuditEntry.objects.latest("id").action == "target.removed"


def test_place_of_the_matrix_becomes_whatever_stands_there(now):
    place = Target.objects.get(name="responsible-team")
    kim = add("kim")

    services.change_target(
        target_id=place.pk,
        asked=TargetRequest("payments", "person", email="team@example.org"),
        actor=an_admin(),
        now=now,
    )

    assert reach.read_ladders(["info"], now)["info"][0].name == "payments"
    add("night", "on_call", members=[kim.pk], rotation_starts_at=now)
    assert wrong(TargetRequest("kim", "channel", address="slack"), kim) == {"kind"}
    critical = Target.objects.get(name="critical")
    assert wrong(TargetRequest("red", "escalation", steps=[(0, "slack")]), critical) == {"name"}
    assert wrong(TargetRequest("critical", "person"), critical) == {"kind"}


def test_person_is_reached_by_their_own_and_their_accounts_addresses_until_it_closes(now):
    account = person("operator", "kim")
    account.email, account.slack_user_id = "kim@example.org", "U024BE7LH"
    account.save()
    target = add("Kim", user="kim", email="night@example.org")

    found = routing.list_destinations([target], now)
    assert found == ["slack:U024BE7LH", "email:night@example.org"]
    account.is_active = False
    account.save()
    target = Target.objects.get(pk=target.pk)
    assert routing.list_destinations([target], now) == []
    found = reach.reach_from(target, directory.read_directory([target]), now)
    assert found.why == "the account kim is deactivated"


def test_rotation_and_escalation_lead_to_whoever_is_there_now(now):
    kim, lee = add("kim", email="kim@example.org"), add("lee", email="lee@example.org")
    monday = datetime(2026, 11, 16, 9, tzinfo=UTC)
    rotation = add("night", "on_call", members=[kim.pk, "lee"], rotation_starts_at=monday)
    escalation_ = add("mine", "escalation", steps=[(0, rotation.pk)])

    def find_destinations(day):
        return routing.list_destinations([escalation_], datetime(2026, 11, day, 10, tzinfo=UTC))

    assert find_destinations(17) == ["email:kim@example.org"]
    assert find_destinations(23) == ["email:lee@example.org"]
    assert find_destinations(30) == ["email:kim@example.org"]
    assert lee.rotations.count() == 1


def test_change_has_what_is_open_looked_at_again(now):
    escalation.open_escalation(
        subject="episode:1", event="x", severity="critical", facts={}, now=now
    )
    Escalation.objects.update(next_at=None)

    place = Target.objects.get(name="cto")
    services.change_target(
        target_id=place.pk,
        asked=TargetRequest("cto", "person", email="cto@example.org"),
        actor=an_admin(),
        now=now,
    )

    assert Escalation.objects.get().next_at == now


def test_test_message_goes_there_and_to_nobody_else(now):
    target = add("kim", email="kim@example.org")

    services.send_test(target_id=target.pk, actor=an_admin(), now=now)

    message = OutboxMessage.objects.get()
    assert (message.event, message.destination) == ("target.test", "email:kim@example.org")
    with pytest.raises(Conflict, match="not set up"):
        services.send_test(
            target_id=Target.objects.get(name="cto").pk, actor=an_admin("b"), now=now
        )


def test_route_is_checked_and_made_once(now):
    admin = an_admin()
    route = {"event": "switch.*", "scope": "global", "severity": "critical", "target": "slack"}

    services.add_route(**route, actor=admin, now=now)

    with pytest.raises(Conflict):
        services.add_route(**route, actor=admin, now=now)
    for wrong_one in ({"event": "a b"}, {"scope": "moon"}, {"severity": "x"}, {"target": "?"}):
        with pytest.raises(InvalidInput):
            services.add_route(**{**route, **wrong_one}, actor=admin, now=now)
