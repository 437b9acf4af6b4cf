"""Dead letters of a stream that a team owns: its members replay and discard them."""

from dataclasses import replace

import pytest

from breakers.dead_letters.bulk import replays
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.removals import actions, restoration, reveal
from breakers.tests.fleet import NOW
from controlplane.accounts.models import Membership
from controlplane.accounts.models.people import User
from controlplane.accounts.teams.tests.teams import create_team, create_token_actor
from controlplane.core.approvals.models import Approval
from controlplane.core.errors import Forbidden
from controlplane.core.escalations import services as escalations
from controlplane.core.http.tests.callers import person
from controlplane.core.jobs import control
from controlplane.core.jobs.models import Job
from controlplane.core.outbox.escalation import Escalation
from controlplane.notify.delivery import failed_messages

from .removal_helpers import REASON, audited, dead, departures, origin

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(letters):
    """Return an operator of Payments, which owns the stream."""
    pat = person("operator", "pat")
    create_team("payments", f"stream:{letters.prefix}*", members=[pat])
    return pat.as_actor()


@pytest.fixture
def other(owner):
    """Return an operator of another team."""
    sam = person("operator", "sam")
    create_team("search", members=[sam])
    return sam.as_actor()


@pytest.fixture
def root_admin(owner):
    return person("admin", "ada").as_actor()


def remove(letters, action, letter, actor, **more):
    return actions.remove_letter(
        action=action,
        stream=letters.stream(),
        entry_id=letter,
        reason=REASON,
        actor=actor,
        now=NOW,
        **more,
    )


def ask(letters, action, actor):
    return replays.request_replay(
        stream=letters.stream(),
        action=action,
        chosen=LetterFilter(),
        reason=REASON,
        actor=actor,
        now=NOW,
    )


def intervene(job, verb, actor):
    return control.intervene(job_id=job.pk, verb=verb, reason=REASON, actor=actor, now=NOW)


def restore(departure, actor):
    return restoration.restore_letter(departure_id=departure, reason=REASON, actor=actor, now=NOW)


@pytest.mark.parametrize(
    ("action", "phrase"), [("retry", "replay its messages"), ("discard", "discard its messages")]
)
def test_others_remove_no_letter(letters, owner, other, action, phrase):
    letter = letters.add()

    with pytest.raises(Forbidden, match=f"Payments owns stream:.* may {phrase}") as refused:
        remove(letters, action, letter, other)

    assert refused.value.extra["who_may"] == ["pat"]
    assert (dead(letters), departures(), audited()) == ([letter], [], [])
    remove(letters, action, letter, owner)
    assert dead(letters) == []


def test_others_edit_no_letter(letters, other):
    letter = letters.add()

    with pytest.raises(Forbidden):
        remove(letters, "retry", letter, other, edited_fields={"order": "18"})

    assert origin(letters) == []


def test_membership_is_checked_again_before_the_removal_is_declared(letters, owner, monkeypatch):
    letter = letters.add()
    request = actions.RemovalRequest(
        action="retry",
        stream=letters.stream(),
        entry_id=letter,
        reason=REASON,
        actor=owner,
        now=NOW,
    )
    catch_up = actions.indexer.catch_up

    def leave_meanwhile(*given, **more):
        Membership.objects.all().delete()
        return catch_up(*given, **more)

    monkeypatch.setattr(actions.indexer, "catch_up", leave_meanwhile)

    with pytest.raises(Forbidden):
        actions.prepare_removal(request)

    assert (dead(letters), departures()) == ([letter], [])


def test_others_restore_no_letter(letters, owner, other):
    done = remove(letters, "discard", letters.add(), owner)

    with pytest.raises(Forbidden):
        restore(done["departure"], other)
    assert dead(letters) == []

    restore(done["departure"], owner)
    assert len(dead(letters)) == 1


@pytest.mark.parametrize("action", replays.ACTIONS)
def test_others_start_no_bulk_job(letters, owner, other, action):
    letters.fill(3)

    with pytest.raises(Forbidden):
        ask(letters, action, other)
    assert not Job.objects.exists()
    assert not Approval.objects.exists()

    made = ask(letters, action, owner)
    assert isinstance(made, Approval if action == "purge" else Job)


@pytest.mark.parametrize("action", ["retry", "discard"])
def test_others_stop_a_bulk_job_and_do_not_resume_it(letters, owner, other, action):
    letters.fill(3)
    job = ask(letters, action, owner)

    assert intervene(job, "pause", other).state == Job.State.PAUSED
    with pytest.raises(Forbidden, match="Payments owns"):
        intervene(job, "resume", other)
    assert intervene(job, "resume", owner).state == Job.State.RUNNING
    assert intervene(job, "cancel", other).state == Job.State.CANCELLED


def test_admin_reveals_and_does_not_replay(letters, root_admin):
    letter = letters.add(token="s3cret")

    seen = reveal.reveal_letter(
        stream=letters.stream(), entry_id=letter, actor=root_admin, now=NOW, reason=REASON
    )
    with pytest.raises(Forbidden):
        remove(letters, "retry", letter, root_admin)

    assert ("token", b"s3cret") in [(name.decode(), value) for name, value in seen.pairs]


def test_token_of_an_admin_reveals_within_its_limits(letters, root_admin):
    letter = letters.add()
    token = create_token_actor(User.objects.get(pk=root_admin.user_id))
    arguments = {"entry_id": letter, "now": NOW, "reason": REASON}

    reveal.reveal_letter(stream=letters.stream(), actor=token, **arguments)
    limited = replace(token, patterns=frozenset({"stream:other*"}))
    with pytest.raises(Forbidden, match="limited to stream:other"):
        reveal.reveal_letter(stream=letters.stream(), actor=limited, **arguments)


def test_limited_token_retries_no_message_of_the_outbox(letters, owner):
    token = create_token_actor(User.objects.get(pk=owner.user_id), only_owned=True)

    with pytest.raises(Forbidden, match="what its own team owns"):
        failed_messages.retry_destination(destination="slack:ops", actor=token, now=NOW)


def test_limited_token_acknowledges_escalations_within_its_limits(owner, letters):
    token = create_token_actor(User.objects.get(pk=owner.user_id), only_owned=True)

    def acknowledge(resource):
        opened = Escalation.objects.create(
            subject=f"dlq:{resource}",
            event="dlq.alarm",
            severity="warning",
            resource=resource,
            opened_at=NOW,
        )
        return escalations.acknowledge_one(escalation_id=opened.pk, actor=token, now=NOW)

    assert acknowledge(f"stream:{letters.name()}").acknowledged_by == "token:ci"
    for resource in ("stream:other", ""):
        with pytest.raises(Forbidden, match="what its own team owns"):
            acknowledge(resource)
