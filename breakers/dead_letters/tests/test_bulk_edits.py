"""Bulk edits: one change for many letters, previewed, run as a bulk job; originals are kept."""

import json

import pytest

from breakers.dead_letters.bulk import eligibility
from breakers.dead_letters.letters.field_edits import FieldEdit
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.models import Departure, Replay
from breakers.tests.fleet import NOW
from controlplane.core.audit.models import AuditEntry
from controlplane.core.errors import InvalidInput
from controlplane.core.jobs.models import Job

from .heaps import list_origin
from .test_replays import EVERYTHING, REASON, ask, until_over

pytestmark = pytest.mark.django_db
EDIT = FieldEdit("replace", "payload.currency", "USD", "US")


def add_orders(letters, *currencies):
    for number, currency in enumerate(currencies, 1):
        payload = json.dumps({"order": number, "currency": currency})
        letters.add(id=f"{number}-0", payload=payload)
    return letters.stream()


def bulk_url(stream):
    return f"/dead-letters/default/-/bulk/{stream.name}/"


def test_job_edits_the_letters_it_applies_to_and_keeps_the_originals(letters):
    stream = add_orders(letters, "US", "EUR", "US")

    counts = eligibility.count_eligible(stream, EVERYTHING, "retry", 3, NOW, edit=EDIT)
    job = ask(stream, edit=EDIT)
    until_over(job)

    sent = [json.loads(fields["payload"]) for _, fields in list_origin(letters)]
    assert sent == [{"order": 1, "currency": "USD"}, {"order": 3, "currency": "USD"}]
    assert letters.redis.xlen(stream.name) == 1
    done = Replay.objects.get(pk=job.pk).counts
    assert (done["done"], done["why"]) == (2, {"not_edited": 1})
    assert (counts.eligible, counts.why) == (2, {"not_edited": 1})
    first = Departure.objects.order_by("position").first()
    assert b'"US"' in dict(first.entry.pairs)[b"payload"]
    assert b'"USD"' in dict(first.edited_pairs)[b"payload"]
    asked = AuditEntry.objects.get(action="dead_letters.replay_asked")
    assert json.loads(asked.after)["edit"]["value"] == "USD"


def test_edit_is_only_for_a_retry(letters):
    stream = add_orders(letters, "US")

    with pytest.raises(InvalidInput):
        ask(stream, action="discard", edit=EDIT)


def test_form_previews_three_letters_before_it_starts(letters, operator):
    stream = add_orders(letters, "US", "US", "US", "US", "EUR")
    form = {
        "action": "edit", "edit_op": "replace", "edit_path": "payload.currency",
        "edit_find": "US", "edit_value": "USD", "reason": REASON,
    }  # fmt: skip

    unseen = operator.client.post(bulk_url(stream), form)
    preview = operator.client.post(bulk_url(stream), {**form, "do": "count"})
    html = preview.content.decode()
    seen = {
        **form,
        "previewed": '{"find":"US","op":"replace","path":"payload.currency","value":"USD"}',
    }
    started = operator.client.post(bulk_url(stream), seen)

    assert unseen.status_code == 422
    assert preview.status_code == 200
    assert html.count("<ins>") == 3
    assert "1 not changed by the edit" in html
    assert started.status_code == 302
    assert Replay.objects.get().edit == EDIT.as_dict()


def test_selection_reaches_the_job(letters, operator):
    stream = add_orders(letters, "US", "EUR", "US")

    nothing = operator.client.get(bulk_url(stream), {"action": "retry", "select": "1"})
    two = operator.client.get(
        bulk_url(stream), {"action": "retry", "select": "1", "ids": ["1-0", "3-0"]}
    )
    all_of_them = operator.client.get(
        bulk_url(stream), {"action": "retry", "select": "1", "all": "1", "ids": ["1-0"]}
    )
    job = ask(stream, chosen=LetterFilter.from_mapping({"ids": "3-0,1-0"}))
    until_over(job)

    assert nothing.status_code == 409
    assert "Retry 2 letters" in " ".join(two.content.decode().split())
    assert "Retry 3 letters" in " ".join(all_of_them.content.decode().split())
    assert letters.redis.xlen(stream.name) == 1
    assert Replay.objects.get(pk=job.pk).chosen == {"ids": "1-0,3-0"}


def test_api_plans_and_starts_a_bulk_edit(letters, operator):
    stream = add_orders(letters, "US", "EUR")
    body = {
        "action": "retry", "stream": stream.name, "reason": REASON,
        "filter": {"ids": "1-0,2-0"}, "edit": EDIT.as_dict(),
    }  # fmt: skip

    plan = operator.post("/dlq/jobs/", {**body, "dry_run": True})
    started = operator.post("/dlq/jobs/", body)
    wrong = operator.post("/dlq/jobs/", {**body, "edit": {"op": "add", "path": "x"}})

    assert plan.json()["eligible"] == 1
    (letter,) = plan.json()["preview"]
    assert letter["changes"] == [{"path": "payload.currency", "before": '"US"', "after": '"USD"'}]
    assert started.status_code == 202
    assert started.json()["edit"] == EDIT.as_dict()
    assert "edit.op" in wrong.json()["errors"]
    assert Job.objects.count() == 1
