"""The inbox of dead letters and the page of one stream: what they say and to whom."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.urls import reverse

from breakers.dead_letters.models import Gap, LetterServer, LetterStream
from breakers.dead_letters.monitoring import alarms, indexer
from breakers.dead_letters.removals import actions
from controlplane.accounts.models.people import User
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from switches.tests.browsers import PART, browser, page, text

from .removal_helpers import KIM, REASON

pytestmark = pytest.mark.django_db


def address(stream: LetterStream, query: str = "") -> str:
    return reverse("letter_stream_page", args=[stream.server, stream.name]) + query


def index_stream(letters, of="events") -> LetterStream:
    stream = letters.stream(of)
    indexer.catch_up(stream, db_now())
    stream.refresh_from_db()
    return stream


def visitor(role):
    return browser(User.objects.filter(role=role).first() or person(role))


def get_page(role, path, **more):
    return page(visitor(role).get(path, **more))


def test_nothing_yet_says_what_is_watched_and_how_to_send_the_first(letters):
    LetterServer.objects.create(name="default", asked_at=db_now())

    page_text = text(get_page("viewer", "/dead-letters/"))

    assert f"{letters.prefix}:dlq:{{stream}}" in page_text
    assert "from switchgear.dlq import dead_letter" in page_text
    assert "Available" in page_text


def test_the_stream_with_an_alarm_comes_first_and_is_counted_in_the_menu(letters):
    letters.fill(3, to="deep")
    letters.add(to="alarming")
    index_stream(letters, "deep")
    alarming = index_stream(letters, "alarming")
    LetterStream.objects.filter(pk=alarming.pk).update(alarmed_at=db_now())

    html = get_page("viewer", "/dead-letters/")

    assert streams_shown(html) == [f"default/{letters.name(of)}" for of in ("alarming", "deep")]
    assert "1 backlog" in text(html)
    assert "1 with a backlog" in text(html)


def test_depth_says_since_when_it_is_not_updated(letters):
    letters.fill(3)
    stream = index_stream(letters)
    LetterStream.objects.update(depth=3, sampled_at=db_now())
    current = [text(get_page("viewer", path)) for path in ("/dead-letters/", address(stream))]
    LetterStream.objects.update(sampled_at=db_now() - timedelta(minutes=9))

    stale = [text(get_page("viewer", path)) for path in ("/dead-letters/", address(stream))]

    assert ["no update since" in one for one in current] == [False, False]
    assert ["3 no update since" in one for one in stale] == [True, True]


def test_a_server_that_is_away_is_said_and_its_streams_stay(letters):
    letters.add()
    index_stream(letters)
    LetterServer.objects.create(name="default", is_away=True, since=db_now(), error="refused")

    page_text = text(get_page("viewer", "/dead-letters/"))

    assert "The Redis server default does not respond" in page_text
    assert letters.name() in page_text


def test_what_failed_most_this_week_leads_to_its_letters(letters):
    letters.add(error="no such order")
    stream = index_stream(letters)
    group = stream.groups.get()

    html = get_page("viewer", "/dead-letters/")

    assert "Most frequent failures this week" in html
    assert f"{address(stream)}?tab=messages&amp;fingerprint={group.fingerprint}" in html


def test_the_live_part_is_the_part_alone(letters):
    response = visitor("viewer").get("/dead-letters/", headers=PART)

    assert page(response).lstrip().startswith('<div id="live"')
    assert response["Switchgear-Now"]


def test_groups_show_how_many_failed_alike_and_viewers_have_no_buttons(letters):
    for number in range(3):
        letters.add(error=f"order {number} timed out")
    stream = index_stream(letters)

    viewed, operated = (get_page(role, address(stream)) for role in ("viewer", "operator"))

    assert "3 letters" in text(viewed)
    assert "Retry all" in operated
    assert "Retry all" not in viewed
    assert "Purge" not in text(viewed)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("&q=1002", ["1002"]),
        ("&field=payload.id&value=1001", ["1001"]),
        ("&field=payload.id", ["1002", "1001"]),
        ("&error=timed", ["1002"]),
        ("&error_type=KeyError", ["1001"]),
        ("&after=2999-01-01T00:00", []),
        ("", ["1002", "1001"]),
    ],
)
def test_a_filter_narrows_the_letters(letters, query, found):
    letters.add(id="1001-0", payload='{"id": 1001}', error="no", dlq_error_type="KeyError")
    letters.add(id="1002-0", payload='{"id": 1002}', error="it timed out")
    stream = index_stream(letters)

    html = get_page("viewer", address(stream, f"?tab=messages{query}"))

    assert [one.split("-")[0] for one in ids_shown(html)] == found


def test_a_filter_that_makes_no_sense_says_so(letters):
    letters.add()

    html = get_page("viewer", address(letters.stream(), "?tab=messages&before=yesterday"))

    assert "Must be a time" in html


def test_letters_come_in_pages(letters):
    letters.fill(60)
    stream = index_stream(letters)

    first = get_page("viewer", address(stream, "?tab=messages"))
    second = get_page("viewer", address(stream, "?tab=messages&cursor=11-0"))

    assert ids_shown(first) == [f"{number}-0" for number in range(60, 10, -1)]
    assert ids_shown(second) == [f"{number}-0" for number in range(10, 0, -1)]


def test_secrets_are_shown_in_no_list(letters):
    letters.add(password="hunter2", error='login failed: {"token": "abc123"}')
    stream = index_stream(letters)

    pages = [
        get_page("admin", path)
        for path in ("/dead-letters/", address(stream), address(stream, "?tab=messages"))
    ]

    assert not any("hunter2" in html or "abc123" in html for html in pages)
    assert "[redacted]" in pages[2]


def test_a_server_that_does_not_answer_leaves_the_page_standing(letters, settings):
    letters.add()
    stream = index_stream(letters)
    gone = {"default": "redis://127.0.0.1:1/0"}
    settings.DEAD_LETTERS = replace(settings.DEAD_LETTERS, servers=gone)

    answers = [
        visitor("operator").get(address(stream, query))
        for query in ("", "?tab=messages", "?tab=archive", "?tab=gaps")
    ]

    assert [one.status_code for one in answers] == [200] * 4
    assert "does not respond" in text(page(answers[1]))


def test_the_archive_has_what_left_and_what_can_be_put_back(letters):
    retried, discarded = letters.add(), letters.add()
    stream = letters.stream()
    arguments = {"stream": stream, "reason": REASON, "actor": KIM, "now": db_now()}
    actions.retry(entry_id=retried, **arguments)
    actions.discard(entry_id=discarded, **arguments)

    html = get_page("operator", address(stream, "?tab=archive"))

    assert retried in html
    assert discarded in html
    assert html.count("Restore") == 1
    assert REASON in html


def test_gaps_say_what_vanished(letters):
    letters.add()
    stream = index_stream(letters)
    Gap.objects.create(stream=stream, first="1-1", last="1-9", count=9, noticed_at=db_now())

    html = get_page("viewer", address(stream, "?tab=gaps"))

    assert "1-9" in html


def test_a_name_that_no_pattern_matches_is_not_there(letters):
    letters.redis.xadd(f"{letters.prefix}:events", {"a": "b"})

    path = reverse("letter_stream_page", args=["default", f"{letters.prefix}:events"])

    assert visitor("admin").get(path).status_code == 404


@pytest.mark.parametrize("odd", ["a/b", "a%2Fb", "주문", "a b?c#d", "-/letter/1-0/x", "a\nb"])
def test_a_name_may_have_any_characters(letters, odd):
    letter = letters.add(to=odd)
    stream = letters.stream(odd)

    inbox = visitor("viewer").get("/dead-letters/")
    response = visitor("viewer").get(address(stream))
    path = reverse("letter_page", args=[stream.server, letter, stream.name])

    assert inbox.status_code == 200
    assert response.context["stream"] == stream
    assert visitor("viewer").get(path).context["entry"].id == letter


def test_the_outbox_leads_to_the_deliveries(letters):
    response = visitor("viewer").get("/dead-letters/default/outbox/")

    assert response.headers["Location"] == "/deliveries/?state=failed"


def test_the_runbook_says_how_it_is_now(letters):
    letters.fill(2)
    stream = index_stream(letters)

    html = get_page("viewer", "/runbooks/dead-letters/")

    assert f'href="{alarms.stream_path(stream)}"' in html
    assert "2 in " in text(html)


def test_a_stream_that_is_long_gone_is_no_row(letters):
    letters.add()
    stream = index_stream(letters)
    LetterStream.objects.filter(pk=stream.pk).update(gone_at=db_now() - timedelta(days=31))

    assert streams_shown(get_page("viewer", "/dead-letters/")) == []


def streams_shown(html: str) -> list[str]:
    return re.findall(r'data-switch="(default/test-[^"]*)"', html)


def ids_shown(html: str) -> list[str]:
    return [part.split('"')[0] for part in html.split(' id="letter-')[1:]]


def test_what_matches_is_offered_as_a_file_and_given(letters):
    letters.fill(3)
    letters.add(order="only-this-one")
    stream = index_stream(letters)

    html = get_page("viewer", address(stream, "?tab=messages&q=only-this-one"))
    link = re.search(r'href="(/api/v1/dlq/[^"]*format=csv[^"]*)"', html)[1].replace("&amp;", "&")
    response = visitor("viewer").get(link)

    assert response.status_code == 200
    lines = b"".join(response.streaming_content).decode().splitlines()
    assert len(lines) == 2
    assert "only-this-one" in lines[1]
