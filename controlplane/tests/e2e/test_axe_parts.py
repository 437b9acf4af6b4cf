"""axe-core on first steps, samples, favorites, comments and test messages, at 1440 and at 320."""

import pytest
from playwright.sync_api import expect

from controlplane.core import provision
from controlplane.core.clock import db_now
from controlplane.core.comments import services as comments
from controlplane.core.configuration.services import load_shipped
from controlplane.core.favorites import services as favorites
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.delivery.tests.message_samples import hook
from controlplane.tests.e2e import axe
from slo.models import Alert
from switches.models import Episode

pytestmark = [pytest.mark.e2e, axe.needs_axe, pytest.mark.timeout(600)]
RULES = {"type": "tag", "values": axe.TAGS}
SIZES = ({"width": 1440, "height": 900}, {"width": 320, "height": 568})
TURNS = tuple((theme, size, RULES) for theme in ("light", "dark") for size in SIZES)
NOTE = "Rolled back core 2.14.\nErrors fell at once, INC-4411."


@pytest.fixture
def ada(night):
    """A person with favorites and comments, beside the data of a bad night and the samples."""
    now = db_now()
    load_shipped(actor=provision.ACTOR, now=now)
    for kind, key in (("switch", "segment:finance"), ("slo", "core-availability")):
        favorites.add_favorite(user_id=night.pk, kind=kind, key=key, now=now)
    episode = Episode.objects.get(switch="segment:finance", ended_at=None)
    for kind, row in (("episode", episode), ("alert", Alert.objects.earliest("pk"))):
        actor = night.as_actor()
        comments.add_comment(kind=kind, key=str(row.pk), text=NOTE, actor=actor, now=now)
    return night


def test_pages_with_favorites_comments_samples_and_jobs_are_accessible(rounds, ada):
    desk, other = rounds.open_desk(ada), rounds.open_desk(ada)
    episode, alert = Episode.objects.latest("pk"), Alert.objects.earliest("pk")
    paths = [
        "/",
        "/?mine=favorites",
        "/first-steps/",
        "/switches/segment/finance/",
        f"/alerts/{alert.pk}/",
        f"/comments/episode/{episode.pk}/",
        "/breakers/",
        "/slos/",
        "/jobs/",
        "/targets/",
    ]

    wrong = axe.check_pages([desk.page, other.page], paths, desk.url, TURNS)

    assert not wrong, wrong


@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("/first-steps/", "#clear-samples"),
        ("/switches/segment/finance/", "a[href^='/comments/episode/']"),
        ("/alerts/{alert}/", "a[href^='/comments/alert/']"),
    ],
)
def test_dialogs_of_samples_and_comments_are_accessible(rounds, ada, path, link):
    page = rounds.open_desk(ada).open(path.format(alert=Alert.objects.earliest("pk").pk))
    page.locator(link).first.click()
    expect(page.locator("#dialog")).to_be_visible()
    faults: axe.Faults = {}

    axe.judge(page, faults, TURNS)

    assert not faults, axe.format_faults(faults)


def test_dialog_of_a_test_message_is_accessible_while_it_waits_and_after_it_failed(rounds, ada):
    hook("ops-hook")
    page = rounds.open_desk(ada).open("/targets/")
    page.get_by_role("button", name="Send test message to ops-hook").click()
    dialog = page.locator("#dialog")
    faults: axe.Faults = {}
    expect(dialog).to_contain_text("Waiting: 1")

    axe.judge(page, faults, TURNS)
    OutboxMessage.objects.filter(event="target.test").update(
        state="failed", last_error="HTTP 404", finished_at=db_now()
    )
    expect(dialog).to_contain_text("Failed: 1", timeout=8_000)
    axe.judge(page, faults, TURNS)

    assert not faults, axe.format_faults(faults)
