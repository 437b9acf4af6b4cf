"""Registering one object makes a transport available everywhere."""

import html
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection

from controlplane.core.clock import db_now
from controlplane.core.encryption import SEALED_PREFIX
from controlplane.core.http.tests.callers import as_role, with_token
from controlplane.core.outbox import services
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.rate_limiter import RateLimit
from controlplane.notify.delivery import sender
from controlplane.notify.models.targets import Target
from controlplane.notify.targets import destination_names
from controlplane.notify.transports import destinations
from controlplane.notify.transports.base import TRANSPORTS, DocsRow, Transport
from controlplane.notify.transports.channel_settings import ChannelSettings, SettingSpec
from controlplane.openapi import document

pytestmark = pytest.mark.django_db
DOCS = Path(__file__).parents[4] / "docs" / "notifications.md"
BAND = "band-of-a-pigeon-0815"


class Loft:
    """A transport that records its messages."""

    def __init__(self):
        self.sent = []

    def send(self, message):
        self.sent.append(message)


@pytest.fixture
def loft():
    loft = Loft()
    pigeon = Transport(
        key="pigeon",
        label="carrier pigeon",
        position=99,
        reaches=lambda destination: Target.objects.filter(pk=destination[7:]).exists(),
        send=loft.send,
        limit=RateLimit(1000, 1000),
        address_examples=("pigeon",),
        settings=ChannelSettings(
            SettingSpec(
                name="pigeon_band", label="Band of the pigeon", noun="a band", is_secret=True
            ),
            SettingSpec(
                name="pigeon_race",
                label="Race of the pigeon",
                noun="a race",
                choices=(("homing", "Homing"), ("rock", "Rock")),
            ),
        ),
        docs=(DocsRow("carrier pigeon", "a target with a band", "no", "is sent again"),),
    )
    TRANSPORTS.register(pigeon)
    yield loft
    TRANSPORTS.unregister("pigeon")


@pytest.fixture
def admin():
    return as_role("admin")


def make(admin, **more):
    body = {"name": "loft", "kind": "channel", "address": "pigeon", "pigeon_band": BAND, **more}
    return admin.post("/targets/", body)


def test_registered_key_can_not_be_taken_twice(loft):
    with pytest.raises(ValueError, match="pigeon"):
        TRANSPORTS.register(TRANSPORTS["pigeon"])


def test_api_makes_a_channel_and_shows_no_secret(loft, admin):
    answer = make(admin, pigeon_race="rock")

    shown = answer.json()
    assert answer.status_code == 201
    assert (shown["transport"], shown["address"]) == ("pigeon", "pigeon")
    assert (shown["pigeon_race"], shown["pigeon_band"]) == ("rock", "…0815")
    assert shown["webhook_url"] is None
    assert shown["reaches"]["to"] == ["carrier pigeon"]
    assert BAND not in answer.content.decode()


def test_settings_are_sealed_in_the_database(loft, admin):
    make(admin)

    with connection.cursor() as cursor:
        cursor.execute("SELECT transport_settings FROM core_target WHERE name = 'loft'")
        (stored,) = cursor.fetchone()
    assert stored.startswith(SEALED_PREFIX)
    assert BAND in Target.objects.get(name="loft").transport_settings


def test_api_lists_channels_by_transport(loft, admin):
    make(admin)

    rows = with_token("switches:read").get("/targets/?transport=pigeon").json()["results"]

    assert [row["name"] for row in rows] == ["loft"]


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({"pigeon_band": ""}, {"pigeon_band"}),
        ({"pigeon_race": "clay"}, {"pigeon_race"}),
        ({"address": "pigeon:7"}, {"address"}),
        ({"address": "slack"}, {"pigeon_band"}),
        ({"webhook_url": "https://1.1.1.1/"}, {"webhook_url"}),
    ],
)
def test_api_checks_the_settings(loft, admin, more, wrong):
    answer = make(admin, **more)

    assert (answer.status_code, set(answer.json()["errors"])) == (400, wrong)


def test_secret_that_is_left_out_stays_until_another_is_given(loft, admin):
    api, pk = admin, make(admin, pigeon_race="rock").json()["id"]
    body = {"name": "attic", "kind": "channel", "address": "pigeon"}

    api.send("put", f"/targets/{pk}/", body)
    kept = TRANSPORTS["pigeon"].settings.values(Target.objects.get(pk=pk))
    api.send("put", f"/targets/{pk}/", {**body, "pigeon_band": "another-4711"})
    changed = TRANSPORTS["pigeon"].settings.values(Target.objects.get(pk=pk))
    api.send("put", f"/targets/{pk}/", {**body, "address": "slack"})

    assert kept == {"pigeon_band": BAND, "pigeon_race": "rock"}
    assert changed["pigeon_band"] == "another-4711"
    assert Target.objects.get(pk=pk).transport_settings == ""


def test_openapi_has_the_key_and_the_fields(loft):
    schemas = document.build()["components"]["schemas"]

    text = str(schemas)
    assert "'pigeon'" in text
    assert "pigeon_band" in text


def test_form_asks_for_the_fields(loft, admin):
    page = admin.client.get("/targets/new/channel/?transport=pigeon").content.decode()

    for text in (
        "Band of the pigeon",
        'name="pigeon_band"',
        '<option value="rock"',
        '<input type="hidden" name="address" value="pigeon">',
    ):
        assert text in page


def test_form_makes_and_changes_a_channel(loft, admin):
    client = admin.client
    typed = {"name": "loft", "address": "pigeon", "pigeon_band": BAND, "pigeon_race": "rock"}

    client.post("/targets/new/channel/", typed)
    target = Target.objects.get(name="loft")
    page = client.get(f"/targets/{target.pk}/change/").content.decode()

    assert "…0815 (leave empty to keep)" in " ".join(html.unescape(page).split())
    assert '<option value="rock" selected>' in page
    assert BAND not in page


def test_command_lists_the_kind(loft):
    out = StringIO()
    call_command("transports", stdout=out)

    assert "a target with a band" in out.getvalue()


def test_docs_miss_a_kind_that_they_do_not_list(loft):
    assert destinations.docs_table() not in DOCS.read_text(encoding="utf-8")


def test_docs_list_every_kind():
    assert destinations.docs_table() in DOCS.read_text(encoding="utf-8")


def test_message_is_delivered_and_named(loft, admin):
    pk = make(admin).json()["id"]
    services.announce(
        event="switch.engaged", event_key="a:1", facts={}, now=db_now(), to=[f"pigeon:{pk}"]
    )

    sender.send_one(f"pigeon:{pk}")

    assert [one.destination for one in loft.sent] == [f"pigeon:{pk}"]
    assert OutboxMessage.objects.get().state == "sent"
    assert (
        destination_names.name_destinations([f"pigeon:{pk}"])[f"pigeon:{pk}"].label
        == "loft (carrier pigeon)"
    )
