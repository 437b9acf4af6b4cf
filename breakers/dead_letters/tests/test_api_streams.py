"""Dead letters over HTTP: the shapes and statuses that clients are built on."""

import csv
import io
import json
from dataclasses import replace

import pytest

from breakers.dead_letters import letter_list
from breakers.dead_letters.models import LetterStream
from breakers.dead_letters.tests.heaps import list_letters, stream_path
from controlplane.core.http.tests.callers import as_role

pytestmark = pytest.mark.django_db
REASON = "broker is back, 0 errors since 02:10"


def test_inbox_is_an_array_of_streams_and_the_outbox(viewer, letters):
    LetterStream.objects.create(
        server="default", name=letters.name(), origin="events", depth=3,
        found_at="2026-01-01T00:00:00Z",
    )  # fmt: skip

    body = viewer.get("/dlq/").json()

    (row,) = [one for one in body if one["name"] == letters.name()]
    assert (row["source"], row["origin"], row["depth"]) == ("stream", "events", 3)
    assert (row["oldest_at"], row["newest_at"], row["alerting"]) == (None, None, False)
    assert row["growth_per_minute"] == 0


def test_messages_are_listed_newest_first_redacted_and_page_by_page(viewer, letters):
    sent = [letters.add(payload=json.dumps({"n": n, "password": "x"})) for n in range(5)]

    first = list_letters(viewer, letters, limit=2)
    second = viewer.get(first["next"].removeprefix("http://testserver")).json()

    assert [one["id"] for one in first["results"]] == [sent[4], sent[3]]
    assert [one["id"] for one in second["results"]] == [sent[2], sent[1]]
    assert json.loads(first["results"][0]["fields"]["payload"]) == {
        "n": 4,
        "password": "[redacted]",
    }
    assert first["results"][0]["error_type"] == "TimeoutError"


def test_messages_of_a_page_that_ends_have_no_next(viewer, letters):
    letters.add()

    body = list_letters(viewer, letters)

    assert (body["next"], body["complete"], len(body["results"])) == (None, True, 1)


@pytest.mark.parametrize(
    "filters",
    [
        {"error": "REFUSED"},
        {"q": "seoul"},
        {"field": "payload.order.items.0.sku=A-1"},
        {"field": "payload.order.items.0.sku", "value": "A-1"},
        {"error_type": "ConnectionError"},
        {"error": "refused", "q": "seoul", "field": "payload.order"},
    ],
)
def test_filter_finds_the_one_that_is_meant(viewer, letters, filters):
    for number in range(3):
        letters.add(error=f"timeout {number}", payload='{"order":{"items":[{"sku":"B-1"}]}}')
    meant = letters.add(
        error="refused by 10.0.0.1",
        dlq_error_type="ConnectionError",
        payload='{"order":{"items":[{"sku":"A-1"}],"city":"Seoul"}}',
    )

    body = list_letters(viewer, letters, **filters)

    assert [one["id"] for one in body["results"]] == [meant]


def test_filter_by_fingerprint_is_what_the_groups_say(viewer, letters):
    for number in range(3):
        letters.add(error=f"timeout of order {number}")
    letters.add(error="refused", dlq_error_type="ConnectionError")

    groups = viewer.get(stream_path(letters, "groups/")).json()
    largest = groups["results"][0]
    body = list_letters(viewer, letters, fingerprint=largest["fingerprint"])

    assert (largest["count"], groups["complete"], len(groups["results"])) == (3, True, 2)
    assert largest["first"] <= largest["last"]
    assert largest["sample"].startswith("timeout of order")
    assert {one["fingerprint"] for one in body["results"]} == {largest["fingerprint"]}
    assert len(body["results"]) == 3


def test_one_message_has_its_history(viewer, letters):
    sent = letters.add(dlq_attempts=3)

    body = viewer.get(stream_path(letters, f"messages/{sent}/")).json()

    assert (body["id"], body["stream"], body["attempts"]) == (sent, letters.name(), 3)
    assert [one["kind"] for one in body["history"]] == ["failed"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/dlq/streams/other%3Akey/messages/", 404),
        ("/dlq/streams/outbox/messages/", 404),
        ("{stream}messages/?server=nowhere", 404),
        ("{stream}messages/1-1/", 404),
        ("{stream}messages/not-an-id/", 404),
        ("{stream}messages/?cursor=rubbish", 400),
        ("{stream}messages/?limit=0", 400),
        ("{stream}messages/?value=x", 400),
        ("{stream}messages/?before=yesterday", 400),
        ("{stream}export?format=xml", 400),
        ("/dlq/jobs/999999/", 404),
        ("/dlq/jobs/?state=over", 400),
        ("/dlq/archive/?message_id=zz", 400),
        ("/dlq/archive/999999/", 404),
    ],
)
def test_what_is_unknown_or_wrong_is_said(viewer, letters, path, status):
    letters.add()

    response = viewer.get(path.replace("{stream}", stream_path(letters, "")))

    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"


def test_stream_with_slashes_and_percent_signs_in_its_name_is_found(operator, letters):
    sent = letters.add(to="a/messages/50%25 off?#")
    path = stream_path(letters, f"messages/{sent}/", of="a/messages/50%25 off?#")

    assert operator.get(path).json()["id"] == sent
    assert operator.post(f"{path}retry", {"reason": REASON}).status_code == 200


@pytest.mark.parametrize("name", ["50%25 off?#", "two\nlines", "ends\n"])
def test_next_page_of_a_stream_with_an_odd_name_is_found(viewer, letters, name):
    first, _ = letters.add(to=name), letters.add(to=name)

    page = viewer.get(stream_path(letters, of=name), {"limit": 1}).json()
    rest = viewer.get(page["next"].partition("/api/v1")[2])

    assert [one["id"] for one in rest.json()["results"]] == [first]


def test_letters_that_take_long_to_redact_are_given_some_at_a_time(viewer, letters, monkeypatch):
    keys = ",".join(f'"{at}":1' for at in range(300))
    for _ in range(20):
        letters.add(payload="{" + keys + "}", **{f"f{at}": keys for at in range(10)})
    monkeypatch.setattr(letter_list, "PAGE_SECONDS", 0.0)

    page = list_letters(viewer, letters)

    assert 1 <= len(page["results"]) < 20
    assert f"cursor={page['results'][-1]['id']}" in page["next"]
    assert page["complete"] is False


def test_what_an_error_says_of_secrets_is_hidden_wherever_it_is_told(viewer, letters):
    sent = letters.add(
        error="login with password=hunter2",
        dlq_error_type="Wrong token=hunter2",
        dlq_group="g secret=hunter2",
    )

    told = [
        list_letters(viewer, letters),
        list_letters(viewer, letters, error_type="Wrong token=[redacted]"),
        viewer.get(stream_path(letters, "groups/")).json(),
        viewer.get(stream_path(letters, f"messages/{sent}/")).json(),
    ]
    as_role("operator").post(stream_path(letters, f"messages/{sent}/discard"), {"reason": REASON})
    told += viewer.get("/dlq/archive/", {"stream": letters.name()}).json()["results"]

    assert [one["id"] for one in told[1]["results"]] == [sent]
    assert "hunter2" not in json.dumps(told)
    assert len(told) == 5


def test_fingerprints_tell_nothing_of_what_is_hidden(viewer, letters):
    sent = [letters.add(error=f"login with password={one}") for one in ("winter", "summer")]

    told = list_letters(viewer, letters)["results"]
    told += [viewer.get(stream_path(letters, f"messages/{one}/")).json() for one in sent]
    told += viewer.get(stream_path(letters, "groups/")).json()["results"]
    lines = b"".join(viewer.get(stream_path(letters, "export")).streaming_content).splitlines()
    told += map(json.loads, lines)
    as_role("operator").post(
        stream_path(letters, f"messages/{sent[0]}/discard"), {"reason": REASON}
    )
    told += viewer.get("/dlq/archive/", {"stream": letters.name()}).json()["results"]

    (fingerprint,) = {one["fingerprint"] for one in told}
    assert len(told) == 8
    assert len(list_letters(viewer, letters, fingerprint=fingerprint)["results"]) == 1
    page = viewer.client.get(letters.stream().letter_url(sent[1])).content.decode()
    assert f"fingerprint={fingerprint}" in page


def test_group_indexed_before_another_key_was_hidden_lists_its_letters(viewer, letters, settings):
    sent = letters.add(error="login with vault=winter")
    (group,) = viewer.get(stream_path(letters, "groups/")).json()["results"]
    keys = [*settings.DEAD_LETTERS.hidden_keys, "vault"]
    settings.DEAD_LETTERS = replace(settings.DEAD_LETTERS, hidden_keys=keys)

    (body,) = list_letters(viewer, letters, fingerprint=group["fingerprint"])["results"]

    assert body["id"] == sent
    assert body["fingerprint"] != group["fingerprint"]


def test_garbage_is_listed_shown_grouped_and_exported(viewer, letters):
    garbage = bytes(range(256))
    deep = b"[" * 500 + b'"\\n"' + b"]" * 500
    letters.redis.xadd(letters.name(), {garbage: garbage, b"": b"", b"deep": deep})
    letters.redis.xadd(letters.name(), {b"big": b"x" * 5_000_000})
    many = letters.redis.xadd(letters.name(), {f"f{n}": "v" for n in range(500)})
    letters.redis.xadd(letters.name(), {b"dlq_error": garbage, b"dlq_failed_at": garbage})

    body = list_letters(viewer, letters)
    one = viewer.get(stream_path(letters, f"messages/{many.decode()}/")).json()

    assert len(body["results"]) == 4
    assert body["results"][2]["fields"]["big"]["bytes"] == 5_000_000
    assert len(one["fields"]) == 500
    assert list_letters(viewer, letters, q="nothing like it")["results"] == []
    assert viewer.get(stream_path(letters, "groups/")).status_code == 200
    lines = b"".join(viewer.get(stream_path(letters, "export")).streaming_content).splitlines()
    assert len(lines) == 4
    assert len(json.loads(lines[1])["fields"]["big"]) == 5_000_000


def test_export_is_redacted_filtered_and_safe_in_a_spreadsheet(viewer, letters):
    letters.add(error="=cmd()", password="x")
    letters.add(error="other")

    response = viewer.get(stream_path(letters, "export"), {"format": "csv", "error": "cmd"})
    rows = list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode())))

    assert response["Content-Type"].startswith("text/csv")
    assert [row["error"] for row in rows] == ["'=cmd()"]
    assert json.loads(rows[0]["fields"])["password"] == "[redacted]"
