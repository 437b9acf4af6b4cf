"""The JSON of relays' messages: what is written is read again, and what is wrong is named."""

from datetime import timedelta
from typing import Any

import orjson
import pytest

from controlplane.core.errors import DomainError, InvalidInput
from controlplane.dataplane.relay import batch
from controlplane.dataplane.tests.ledgers import NOW
from controlplane.dataplane.tests.relay_messages import (
    WEST,
    make_ack,
    make_batch,
    make_counts,
    make_document,
    make_presence,
    make_report,
    make_status,
)
from controlplane.dataplane.tests.served import EPOCH

ORDER = "3f2b7c1e-0000-4000-8000-000000000001"
FULL = make_batch(
    presences=[make_presence(), make_presence("정산/인스턴스-1", None)],
    acks=[make_ack(), make_ack(version=18, at=NOW + timedelta(milliseconds=1))],
    reports=[make_report(), make_report(2)],
    checks=[make_counts(), make_counts("core/a1")],
)


def serialize(*batches: bytes) -> bytes:
    status = make_status(
        upstream="dp-1",
        release="1.2",
        epoch=EPOCH,
        version=17,
        age_seconds=0.25,
        held=3,
        instances=2,
        polling=2,
        applied_orders={ORDER: 2},
    )
    return batch.assemble_message(status, [make_status(WEST, "west")], batches)


def test_message_is_read_as_it_was_written() -> None:
    message = batch.parse_message(serialize(batch.dump_batch(FULL)))

    assert message.batches == (FULL,)
    assert message.status.applied_orders == {ORDER: 2}
    assert (message.status.version, message.status.age_seconds) == (17, 0.25)
    assert message.relays == (make_status(WEST, "west"),)


def test_batch_of_serialized_parts_is_the_batch_of_all_of_them() -> None:
    reports = [batch.dump_report(each) for each in FULL.reports]
    notes = [
        batch.dump_notes(FULL.presences, (), FULL.checks[:1]),
        batch.dump_notes((), FULL.acks, FULL.checks[1:]),
    ]

    content = batch.assemble_batch("east", FULL.process, FULL.seq, reports, notes)

    assert batch.parse_message(serialize(content)).batches == (FULL,)


def change(document: dict[str, Any], path: str, value: object) -> None:
    *names, last = path.split(".")
    target: Any = document
    for name in names:
        target = target[int(name) if name.isdigit() else name]
    target[last] = value


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("status.process", "east", "status.process"),
        ("status.name", "", "status.name"),
        ("status.held", -1, "status.held"),
        ("status.held", 2**31, "status.held"),
        ("status.age_seconds", "old", "status.age_seconds"),
        ("status.color", "red", "status.color"),
        ("status.applied_orders", {"x": 1}, "status.applied_orders"),
        ("relays.0.name", None, "relays[0].name"),
        ("more", 1, "more"),
        ("batches", {}, "batches"),
        ("batches", [[]], "batches"),
        ("batches.0.seq", True, "batches[0].seq"),
        ("batches.0.relay", "a\nb", "batches[0].relay"),
        ("batches.0.presences.1.id", "core", "batches[0].presences[1].id"),
        ("batches.0.presences.1.heard_at", "now", "batches[0].presences[1].heard_at"),
        ("batches.0.acks.0.version", 2**63, "batches[0].acks[0].version"),
        ("batches.0.reports.0.document", [], "batches[0].reports[0].document"),
        ("batches.0.reports.0.final", 1, "batches[0].reports[0].final"),
        ("batches.0.reports.0.services", ["a b"], "batches[0].reports[0].services"),
        ("batches.0.checks.0.caller", "token:", "batches[0].checks[0].caller"),
        ("batches.0.checks.0.switches.0.allowed", -1, "batches[0].checks[0].switches[0].allowed"),
        ("batches.0.presences", [{}] * (batch.MAX_NOTES + 1), "batches[0].presences"),
    ],
)
def test_wrong_field_is_named(path: str, value: object, field: str) -> None:
    document = orjson.loads(serialize(batch.dump_batch(FULL)))
    change(document, path, value)

    with pytest.raises(InvalidInput) as caught:
        batch.parse_message(orjson.dumps(document))

    assert [*caught.value.errors] == [field]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff"])
def test_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(DomainError):
        batch.parse_message(body)


def test_invalid_report_does_not_make_the_message_invalid() -> None:
    report = make_report(1, color="red")

    message = batch.parse_message(serialize(batch.dump_batch(make_batch(reports=[report]))))

    assert message.batches[0].reports[0].document == make_document(1, color="red")


def test_age_that_nobody_can_calculate_with_is_cut() -> None:
    body = batch.assemble_message(make_status(age_seconds=1e300), (), ())
    age = batch.parse_message(body).status.age_seconds
    assert age is not None
    assert timedelta(seconds=age) > timedelta(days=20_000)
