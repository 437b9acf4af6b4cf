"""Owners on the pages of dead letters, the filter by team, and what the pages offer to others."""

import pytest
from django.urls import reverse

from breakers.dead_letters.bulk import replays
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.removals import actions
from controlplane.accounts.models.people import User
from controlplane.accounts.teams.tests.teams import create_team
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person, signed_in
from controlplane.core.jobs import control
from switches.tests.browsers import browser, page, text

from .removal_helpers import REASON

pytestmark = pytest.mark.django_db
INBOX = "/dead-letters/"


@pytest.fixture
def owner(letters):
    """Return the browser of a member of Payments, which owns the stream `events`."""
    pat = person("operator", "pat")
    create_team("payments", f"stream:{letters.name('events')}", members=[pat])
    return browser(pat)


@pytest.fixture
def other(owner):
    sam = person("operator", "sam")
    create_team("search", members=[sam])
    return browser(sam)


def index(letters, of="events"):
    letters.add(to=of)
    stream = letters.stream(of)
    indexer.catch_up(stream, db_now())
    stream.refresh_from_db()
    return stream


def refusal(stream):
    return f"Payments owns {stream.resource}. Only its members may replay its messages."


@pytest.mark.parametrize("tab", ["groups", "messages"])
def test_stream_offers_its_actions_to_the_owner_alone(letters, owner, other, tab):
    stream = index(letters)
    path = f"{stream.page_url}?tab={tab}"

    seen, own = page(other.get(path)), page(owner.get(path))

    assert "Owned by Payments" in text(seen)
    assert refusal(stream) in text(seen)
    for action in ("retry", "discard"):
        assert f"action={action}" not in seen
        assert f'value="{action}"' not in seen
    assert 'id="do-purge"' not in seen
    assert 'id="do-purge"' in own
    assert refusal(stream) not in text(own)


def test_letter_offers_its_actions_to_the_owner_alone(letters, owner, other):
    stream = index(letters)
    (entry_id,) = letters.redis.xrange(stream.name)[0][:1]
    path = stream.letter_url(entry_id.decode())
    buttons = ("do-retry", "do-edit", "do-discard")

    seen, own = page(other.get(path)), page(owner.get(path))

    assert not any(f'id="{one}"' in seen for one in buttons)
    assert refusal(stream) in text(seen)
    assert all(f'id="{one}"' in own for one in buttons)


@pytest.mark.parametrize("view", ["letter_retry", "letter_discard", "letter_edit"])
def test_forms_are_refused_at_once(letters, other, view):
    stream = index(letters)
    (entry_id,) = letters.redis.xrange(stream.name)[0][:1]

    refused = other.get(stream.letter_url(entry_id.decode(), view))

    assert refused.status_code == 403
    assert "Payments owns" in text(page(refused))


def test_archived_letter_is_restored_by_the_owner_alone(letters, owner, other):
    stream = index(letters)
    (entry_id,) = letters.redis.xrange(stream.name)[0][:1]
    pat = User.objects.get(username="pat").as_actor()
    done = actions.discard(
        stream=stream, entry_id=entry_id.decode(), reason=REASON, actor=pat, now=db_now()
    )
    path = reverse("archived_letter_page", args=[done["departure"]])

    assert 'id="do-restore"' not in page(other.get(path))
    assert refusal(stream) in text(page(other.get(path)))
    assert 'id="do-restore"' in page(owner.get(path))
    assert other.get(reverse("letter_restore", args=[done["departure"]])).status_code == 403


def test_bulk_job_is_stopped_by_anyone_and_resumed_by_the_owner(letters, owner, other):
    stream, now = index(letters), db_now()
    pat = User.objects.get(username="pat").as_actor()
    job = replays.request_replay(
        stream=stream, action="retry", chosen=LetterFilter(), reason=REASON, actor=pat, now=now
    )
    path, jobs = reverse("replay_page", args=[job.pk]), reverse("jobs_page")
    assert 'id="pause-job"' in page(other.get(path))

    control.intervene(job_id=job.pk, verb="pause", reason=REASON, actor=pat, now=now)
    seen, own = page(other.get(path)), page(owner.get(path))

    assert 'id="cancel-job"' in seen
    assert 'id="resume-job"' not in seen
    assert refusal(stream) in text(seen)
    assert 'id="resume-job"' in own
    resume = reverse("job_resume", args=[job.pk])
    assert resume not in page(other.get(jobs))
    assert resume in page(owner.get(jobs))
    assert other.get(resume).status_code == 403


def test_inbox_is_filtered_by_team(letters, owner, other):
    mine, unowned = index(letters), index(letters, "other")

    html = page(owner.get(f"{INBOX}?team=mine"))

    assert f'id="stream-{mine.pk}"' in html
    assert f'id="stream-{unowned.pk}"' not in html
    assert "Showing My teams; 1 more elsewhere." in text(html)
    assert "2 dead letters" in text(html)
    assert f'id="stream-{mine.pk}"' not in page(owner.get(f"{INBOX}?team=unowned"))
    assert "No stream in Search matches." in text(page(owner.get(f"{INBOX}?team=search")))


def test_inbox_shows_failures_and_jobs_of_the_same_streams(letters, owner):
    mine, unowned, now = index(letters), index(letters, "other"), db_now()
    pat = User.objects.get(username="pat").as_actor()
    for stream in (mine, unowned):
        replays.request_replay(
            stream=stream, action="retry", chosen=LetterFilter(), reason=REASON, actor=pat, now=now
        )

    seen, every = page(owner.get(f"{INBOX}?team=mine")), page(owner.get(INBOX))

    assert every.count('id="week-default') == every.count('class="letters__replay"') == 2
    assert seen.count('id="week-default') == seen.count('class="letters__replay"') == 1
    assert f"week-default-{mine.name}" in seen


def test_api_filters_the_inbox_by_team(letters, owner):
    mine, unowned = index(letters), index(letters, "other")
    api = signed_in(User.objects.get(username="pat"))

    def names(wanted):
        return {one["name"] for one in api.get("/dlq/", {"team": wanted}).json()}

    assert mine.name in names("mine")
    assert unowned.name not in names("mine")
    assert unowned.name in names("unowned")
    assert api.get("/dlq/", {"team": "gone"}).status_code == 400
