"""The page of one dead letter, and what is done from there: retried, edited, revealed, put back."""

import json
from dataclasses import replace

import pytest
from django.urls import reverse

from breakers.dead_letters.letters import entries
from breakers.dead_letters.models import Departure, LetterStream, Replay
from controlplane.accounts.models.people import User
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.http.tests.callers import person
from switches.tests.browsers import DIALOG, Tags, browser, page, text

from .removal_helpers import REASON

pytestmark = pytest.mark.django_db
ORDER = {"order": {"id": 17, "items": [{"sku": "A"}]}, "api_key": "sk-1"}


def visitor(role):
    return browser(User.objects.filter(role=role).first() or person(role))


def letter_path(stream: LetterStream, letter: str, what: str = "letter_page") -> str:
    return reverse(what, args=[stream.server, letter, stream.name])


def origin(letters):
    return [fields for _, fields in letters.redis.xrange(f"{letters.prefix}:events")]


def typed(html: str) -> dict[str, str]:
    """Return what the form would send."""
    found = {}
    for part in html.split("<textarea")[1:]:
        name = part.split('name="')[1].split('"')[0]
        found[name] = part.split(">\n", 1)[-1].split("</textarea>")[0].replace("&quot;", '"')
    return found


def test_json_is_laid_out_and_what_is_hidden_stays_hidden(letters):
    letter = letters.add(payload=json.dumps(ORDER), password="hunter2")

    html = page(visitor("admin").get(letter_path(letters.stream(), letter)))

    assert "&quot;id&quot;: 17" in html
    assert "sk-1" not in html
    assert "hunter2" not in html
    assert "Reveal hidden values" in html


def test_numbers_are_shown_digit_by_digit(letters):
    letter = letters.add(payload='{"n": 12345678901234567890123, "f": 1.10}')

    html = page(visitor("viewer").get(letter_path(letters.stream(), letter)))

    assert "12345678901234567890123" in html
    assert "1.10" in html


def test_garbage_breaks_no_page(letters):
    many = {f"field{number}": "x" for number in range(500)}
    odd = {
        b"\xff\x00": bytes(range(256)),
        "html": "<script>alert(1)</script>",
        "rtl": "שלום \u202egnp",
        "big": "x" * 5_000_000,
        "deep": "[" * 5000,
        "": "no name",
        **many,
    }
    letter = letters.redis.xadd(letters.name(), odd).decode()
    stream = letters.stream()

    html = page(visitor("operator").get(letter_path(stream, letter)))
    listed = visitor("operator").get(
        f"{reverse('letter_stream_page', args=['default', stream.name])}?tab=messages"
    )

    assert "<script>alert(1)" not in html
    assert "\u202e" not in html
    assert "00 01 02 03" in html
    assert "5.0 MB" in html
    assert "more fields not shown" in text(html)
    assert len(html) < 1_000_000
    assert listed.status_code == 200


def test_a_viewer_has_nothing_to_press(letters):
    letter = letters.add()
    stream = letters.stream()

    html = page(visitor("viewer").get(letter_path(stream, letter)))
    refused = visitor("viewer").post(
        letter_path(stream, letter, "letter_retry"), {"reason": REASON}
    )

    assert "do-retry" not in html
    assert refused.status_code == 403
    assert origin(letters) == []


def test_a_retry_puts_the_message_back_and_leads_to_the_archive(letters):
    letter = letters.add(amount="3")
    stream = letters.stream()
    operator = visitor("operator")

    response = operator.post(
        letter_path(stream, letter, "letter_retry"), {"reason": REASON}, headers=DIALOG
    )

    (message,) = origin(letters)
    assert message[b"amount"] == b"3"
    there = operator.get(response.headers["HX-Redirect"], follow=True)
    assert "It has not failed again so far" in page(there)
    assert REASON in page(there)


def test_without_a_reason_the_dialog_asks_again(letters):
    letter = letters.add()

    response = visitor("operator").post(
        letter_path(letters.stream(), letter, "letter_retry"), {"reason": " "}, headers=DIALOG
    )

    assert response.status_code == 422
    assert "A reason is required" in page(response)
    assert origin(letters) == []


def test_a_discarded_letter_can_be_put_back(letters):
    letter = letters.add()
    stream = letters.stream()
    operator = visitor("operator")
    operator.post(letter_path(stream, letter, "letter_discard"), {"reason": REASON})
    departure = Departure.objects.get()

    response = operator.post(reverse("letter_restore", args=[departure.pk]), {"reason": REASON})

    ((there, _),) = letters.redis.xrange(stream.name)
    assert response.headers["Location"] == letter_path(stream, there.decode())


def test_one_that_is_gone_says_so_in_the_dialog(letters):
    letter = letters.add()
    stream = letters.stream()
    letters.redis.xdel(stream.name, letter)

    response = visitor("operator").post(
        letter_path(stream, letter, "letter_retry"), {"reason": REASON}, headers=DIALOG
    )

    assert response.status_code == 409
    assert "is gone" in page(response)
    assert visitor("viewer").get(letter_path(stream, letter)).status_code == 404


def test_a_form_sent_back_as_it_came_changes_nothing(letters):
    letter = letters.add(payload=json.dumps(ORDER), note="two\r\nlines", html="<b>&amp;</b>")
    edit = letter_path(letters.stream(), letter, "letter_edit")
    operator = visitor("operator")
    form = operator.get(edit).context["fields"]
    # A browser ends every line so, whatever the value had.
    lines = {f"field-{one.index}": one.typed.splitlines() for one in form}
    sent = {name: "\r\n".join(said) for name, said in lines.items()}

    response = operator.post(edit, {**sent, "reason": REASON})

    assert response.status_code == 422
    assert "Nothing was edited" in page(response)
    assert origin(letters) == []


def test_an_edit_keeps_what_is_hidden_and_the_original(letters):
    letter = letters.add(payload=json.dumps(ORDER), other="as it was")
    edit = letter_path(letters.stream(), letter, "letter_edit")
    operator = visitor("operator")
    html = page(operator.get(edit))
    sent = {name: said.replace("17", "18") for name, said in typed(html).items()}

    operator.post(edit, {**sent, "reason": REASON})

    (message,) = origin(letters)
    assert json.loads(message[b"payload"]) == {**ORDER, "order": {**ORDER["order"], "id": 18}}
    assert message[b"other"] == b"as it was"
    assert "sk-1" not in html
    stored = dict(entries.unpack_pairs(Departure.objects.get().fields))
    assert json.loads(stored[b"payload"]) == ORDER


@pytest.mark.parametrize(
    "moved",
    [
        '{"id": 1, "other": "[redacted]"}',
        '{"id": "[redacted]", "api_key": "[redacted]"}',
        '{"id": 2, "api_key": "[redacted] "}',
    ],
)
def test_what_is_hidden_can_not_be_moved_to_where_it_is_seen(letters, moved):
    letter = letters.add(payload='{"id": 1, "api_key": "sk-1"}')
    edit = letter_path(letters.stream(), letter, "letter_edit")
    operator = visitor("operator")
    fields = typed(page(operator.get(edit)))
    place = next(name for name, said in fields.items() if "api_key" in said)

    response = operator.post(edit, {place: moved, "reason": REASON})

    assert response.status_code == 422
    assert "must stay in place" in page(response)
    assert origin(letters) == []


UNSEEN = "pay \u202e1000\u202c,\r\nסוף\u200f"


def test_characters_that_turn_lines_around_are_written_out_in_the_form(letters):
    letter = letters.add(note=UNSEEN, payload=json.dumps({"note": UNSEEN}, ensure_ascii=False))
    edit = letter_path(letters.stream(), letter, "letter_edit")
    operator = visitor("operator")
    html = page(operator.get(edit))
    sent = {name: said.replace("1000", "2000") for name, said in typed(html).items()}

    operator.post(edit, {**sent, "reason": REASON})

    (message,) = origin(letters)
    assert not set(html) & set("\u202e\u202c\u200f")
    assert message[b"note"].decode() == UNSEEN.replace("1000", "2000")
    assert json.loads(message[b"payload"]) == {"note": UNSEEN.replace("1000", "2000")}


def test_a_value_that_writes_such_a_character_itself_stays_as_it_is(letters):
    letter = letters.add(note="\\u202e is \u202e")

    html = page(visitor("operator").get(letter_path(letters.stream(), letter, "letter_edit")))

    assert "Not text; it can't be edited here" in html


def test_json_that_is_none_any_more_is_said_beside_its_field(letters):
    letter = letters.add(payload='{"id": 1}')
    edit = letter_path(letters.stream(), letter, "letter_edit")
    operator = visitor("operator")
    place = next(name for name, said in typed(page(operator.get(edit))).items() if "id" in said)

    response = operator.post(edit, {place: '{"id": ', "reason": REASON})

    assert "This is not valid JSON" in page(response)
    assert origin(letters) == []


def test_an_admin_reveals_for_a_reason_and_that_is_on_record(letters):
    letter = letters.add(password="hunter2")
    reveal = letter_path(letters.stream(), letter, "letter_reveal")

    refused = visitor("operator").post(reveal, {"reason": REASON})
    blank = visitor("admin").post(reveal, {"reason": ""})
    response = visitor("admin").post(reveal, {"reason": REASON})

    assert (refused.status_code, blank.status_code) == (403, 422)
    assert "hunter2" not in page(blank)
    assert "hunter2" in page(response)
    assert "no-store" in response.headers["Cache-Control"]
    (row,) = AuditEntry.objects.filter(action="dead_letter.revealed")
    assert row.reason == REASON


def test_saying_to_have_revealed_it_shows_nothing(letters):
    letter = letters.add(password="hunter2")
    edit = letter_path(letters.stream(), letter, "letter_edit")

    answers = [
        visitor(role).post(edit, {"sees_all": "1", "reason": REASON, **more})
        for role in ("operator", "admin")
        for more in ({}, {"field-1": "", "remove-1": "1"}, {"field-1": "{", "field-0": "x"})
    ]

    assert not any("hunter2" in page(one) for one in answers)
    assert not AuditEntry.objects.filter(action="dead_letter.revealed").exists()


def test_a_bulk_retry_is_counted_first_and_begins_a_job(letters):
    letters.fill(3)
    letters.add(dlq_retry_count="3")
    stream = letters.stream()
    bulk = reverse("letters_bulk", args=[stream.server, stream.name])
    operator = visitor("operator")

    page_text = text(page(operator.get(f"{bulk}?action=retry", headers=DIALOG)))
    sent = {"action": "retry", "reason": REASON, "rate": "20", "does_wait": "1"}
    begun = operator.post(bulk, sent, headers=DIALOG)

    assert "Retry 3 letters" in page_text
    assert "1 retried too often" in page_text
    replay = Replay.objects.get()
    assert replay.rate_per_second == 20.0
    assert begun.headers["HX-Redirect"] == reverse("replay_page", args=[replay.pk])
    assert REASON in page(operator.get(begun.headers["HX-Redirect"]))


def test_a_bulk_rate_that_is_none_keeps_what_was_typed(letters):
    letters.fill(1)
    stream = letters.stream()
    bulk = reverse("letters_bulk", args=[stream.server, stream.name])

    response = visitor("operator").post(bulk, {"action": "retry", "reason": REASON, "rate": "fast"})

    assert response.status_code == 422
    assert REASON in page(response)
    assert not Replay.objects.exists()


@pytest.mark.parametrize(
    "asked",
    [
        {"fingerprint": ""},
        {"error": "", "q": "x"},
        {"value": "x"},
        {"field": "order", "value": "17", "after": ""},
        {"action": "remove"},
    ],
)
def test_a_bulk_job_for_nothing_in_particular_is_not_one_for_all(letters, asked):
    letters.fill(2)
    stream = letters.stream()
    bulk = reverse("letters_bulk", args=[stream.server, stream.name])
    operator = visitor("operator")

    response = operator.get(bulk, {"action": "discard", **asked}, headers=DIALOG)
    begun = operator.post(bulk, {"action": "discard", "reason": REASON, **asked})

    assert (response.status_code, begun.status_code) == (409, 409)
    assert "Discard 2 letters" not in page(response)
    assert not Replay.objects.exists()


def test_a_bulk_job_for_an_empty_value_takes_no_other(letters):
    letters.add(note="")
    letters.add(note="something")
    stream = letters.stream()
    operator = visitor("operator")
    bulk = reverse("letters_bulk", args=[stream.server, stream.name])

    html = page(operator.get(bulk, {"action": "discard", "field": "note="}))
    hidden = {
        more["name"]: more.get("value", "")
        for tag, more in Tags(html).found
        if tag == "input" and more.get("type") == "hidden"
    }
    operator.post(bulk, {**hidden, "reason": REASON})

    assert "Discard 1 letter" in text(html)
    assert Replay.objects.get().chosen == {"field": "note", "value": ""}


def test_a_bulk_retry_is_counted_anew_for_another_number_of_retries(letters):
    letters.fill(3)
    letters.add(dlq_retry_count="3")
    stream = letters.stream()
    bulk = reverse("letters_bulk", args=[stream.server, stream.name])
    arguments = {"do": "count", "action": "retry", "reason": "", "rate": "1", "most_retries": "4"}

    html = page(
        visitor("operator").post(bulk, arguments, headers={**DIALOG, "HX-Target": "counted"})
    )

    assert "Retry 4 letters" in text(html)
    assert "in about 4 s at 1 a second" in text(html)
    assert "A reason is required" not in html
    assert not Replay.objects.exists()


def test_a_purge_waits_for_somebody_else(letters):
    letters.fill(1)
    stream = letters.stream()
    bulk = reverse("letters_bulk", args=[stream.server, stream.name])

    given = {"action": "purge", "reason": REASON, "error": "timeout", "rate": "5"}
    response = visitor("operator").post(bulk, given)

    assert response.headers["Location"] == reverse("approvals_page")
    assert Approval.objects.get().kind == "purge"
    assert not Replay.objects.exists()
    shown = text(page(visitor("approver").get("/approvals/")))
    assert "letters error contains timeout rate 5 a second" in shown


def test_an_admin_reveals_what_is_in_the_archive(letters):
    letter = letters.add(password="hunter2")
    stream = letters.stream()
    visitor("operator").post(letter_path(stream, letter, "letter_discard"), {"reason": REASON})
    departure = Departure.objects.get()
    there, reveal = (
        reverse(name, args=[departure.pk])
        for name in ("archived_letter_page", "archived_letter_reveal")
    )

    refused = visitor("operator").post(reveal, {"reason": REASON})
    hidden = page(visitor("admin").get(there))
    response = page(visitor("admin").get(reveal, headers=DIALOG))
    shown = page(visitor("admin").post(reveal, {"reason": REASON}))

    assert refused.status_code == 403
    assert "hunter2" not in hidden + response
    assert reveal in hidden
    assert "hunter2" in shown
    assert AuditEntry.objects.filter(action="dead_letter.revealed").count() == 1


def test_while_the_server_is_away_each_form_says_so_and_keeps_the_letter(letters, settings):
    letter = letters.add(password="hunter2")
    stream = letters.stream()
    settings.DEAD_LETTERS = replace(
        settings.DEAD_LETTERS, servers={"default": "redis://127.0.0.1:1/0"}
    )
    bulk = reverse("letters_bulk", args=[stream.server, stream.name])
    paths = {
        letter_path(stream, letter, "letter_discard"): "operator",
        letter_path(stream, letter, "letter_reveal"): "admin",
        letter_path(stream, letter, "letter_edit"): "operator",
        bulk: "operator",
    }

    for path, role in paths.items():
        plain = visitor(role).post(path, {"reason": REASON, "action": "discard"})
        dialog = visitor(role).post(path, {"reason": REASON, "action": "discard"}, headers=DIALOG)
        assert (plain.status_code, dialog.status_code) == (503, 409), path
        assert int(plain.headers["Retry-After"]) > 0
        assert "does not respond" in page(dialog)
    assert letters.redis.xlen(stream.name) == 1
    assert not Replay.objects.exists()


def test_every_field_of_the_forms_has_a_label(letters):
    letter = letters.add(payload=json.dumps(ORDER))
    stream = letters.stream()

    for path in (
        letter_path(stream, letter, "letter_edit"),
        letter_path(stream, letter, "letter_retry"),
    ):
        tags = Tags(page(visitor("operator").get(path))).found
        named = {more.get("for") for tag, more in tags if tag == "label"}
        areas = [more["id"] for tag, more in tags if tag == "textarea"]
        assert areas
        assert set(areas) <= named
