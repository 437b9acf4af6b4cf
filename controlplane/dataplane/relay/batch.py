"""The JSON of a relay's message to its upstream (`POST /api/v1/relay/batch`). Pure.

`{"status": {…}, "relays": [{…}], "batches": [{"relay", "process", "seq", "presences", "acks",
"reports", "checks"}]}`: the status of the process that sends it, those of relays behind it, and
batches of both. Unknown fields are refused.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson

from controlplane.core.canonical import timestamp, timestamp_or_none
from controlplane.core.environment_variables import MAX_PLANE_NAME_LENGTH
from controlplane.core.errors import DomainError
from controlplane.dataplane.ingest import report_fields as fields
from controlplane.dataplane.ingest.check_counts import CallerCounts
from controlplane.dataplane.ingest.instance_sql import Ack, Presence
from controlplane.dataplane.ingest.processes import ProcessStatus
from controlplane.dataplane.ingest.relay_message import (
    RelayBatch,
    RelayedCounts,
    RelayedReport,
    RelayMessage,
)
from controlplane.dataplane.ingest.report_fields import Field, ListField, ReportField
from controlplane.dataplane.memory.instance_names import service_of, service_of_caller

MAX_BATCHES = 1000
MAX_RELAYS = 5000
"""Most relays behind a relay."""
MAX_REPORTS = 1000
MAX_NOTES = 500
"""Most presences, and most acknowledgements, in one batch."""
MAX_CALLERS = 1000
MAX_RELEASE_LENGTH = 40
MAX_HELD = 2**31 - 1
MAX_AGE_SECONDS = 2.0**31


def check_name(value: Any) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_PLANE_NAME_LENGTH:
        raise ValueError(f"Must be a name of 1 to {MAX_PLANE_NAME_LENGTH} characters.")
    if not value.isprintable():
        raise ValueError("Must have printable characters only.")
    return value


def check_optional_name(value: Any) -> str:
    return "" if value == "" else check_name(value)


def check_release(value: Any) -> str:
    if len(check_optional_name(value)) > MAX_RELEASE_LENGTH:
        raise ValueError(f"Must be a text of at most {MAX_RELEASE_LENGTH} characters.")
    return str(value)


def check_instance(value: Any) -> str:
    if not isinstance(value, str) or service_of(value) is None:
        raise ValueError("Must be the name of an instance: service/instance.")
    return value


def check_caller(value: Any) -> str:
    if not isinstance(value, str) or service_of_caller(value) is None:
        raise ValueError("Must be the name of an instance, or token: and the name of a token.")
    return value


def check_number(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_HELD:
        raise ValueError("Must be a whole number from 0 to 2^31 - 1.")
    return value


def parse_age(value: Any) -> float:
    """Return an age in seconds; a longer one than 68 years, which can't be calculated with, is cut.

    It is not refused, because a wrong clock must not stop a relay's reports.
    """
    if type(value) not in (int, float) or not 0 <= value < float("inf"):
        raise ValueError("Must be a number of seconds.")
    return min(float(value), MAX_AGE_SECONDS)


def check_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("Must be true or false.")
    return value


def check_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("Must be an object.")
    return value


def check_batches(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or len(value) > MAX_BATCHES:
        raise ValueError(f"Must be a list of at most {MAX_BATCHES} batches.")
    return [check_object(each) for each in value]


def check_services(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > fields.MAX_ELEMENTS:
        raise ValueError(f"Must be a list of at most {fields.MAX_ELEMENTS} services.")
    return tuple(fields.check_part(each) for each in value)


def parse_order_counts(value: Any) -> dict[str, int]:
    """Return the number of instances by the id of an emergency order."""
    if not isinstance(value, dict) or len(value) > fields.MAX_ORDERS:
        raise ValueError(f"Must be an object of at most {fields.MAX_ORDERS} numbers by order.")
    ids = fields.parse_order_ids([*value])
    if len(ids) < len(value):
        raise ValueError("Must have the ids of emergency orders as names.")
    return {order_id: check_number(value[order_id]) for order_id in ids}


STATUS: Mapping[str, Field] = {
    "process": ReportField(fields.parse_uuid, required=True),
    "name": ReportField(check_name, required=True),
    "upstream": ReportField(check_optional_name),
    "release": ReportField(check_release),
    "epoch": ReportField(fields.parse_uuid),
    "version": ReportField(fields.check_integer),
    "age_seconds": ReportField(parse_age),
    "held": ReportField(check_number, required=True),
    "instances": ReportField(check_number, required=True),
    "polling": ReportField(check_number),
    "applied_orders": ReportField(parse_order_counts),
    "started_at": ReportField(fields.parse_time, required=True),
    "heard_at": ReportField(fields.parse_time, required=True),
    "is_stopped": ReportField(check_flag),
}
MESSAGE: Mapping[str, Field] = {
    "status": ReportField(check_object, required=True),
    "relays": ListField(STATUS, key="process", most=MAX_RELAYS),
    "batches": ReportField(check_batches, required=True),
}
BATCH: Mapping[str, Field] = {
    "relay": ReportField(check_name, required=True),
    "process": ReportField(fields.parse_uuid, required=True),
    "seq": ReportField(fields.check_integer, required=True),
    "presences": ListField(
        {
            "id": ReportField(check_instance, required=True),
            "heard_at": ReportField(fields.parse_time, required=True),
            "epoch": ReportField(fields.parse_uuid),
            "version": ReportField(fields.check_integer),
            "applied_at": ReportField(fields.parse_time),
        },
        most=MAX_NOTES,
    ),
    "acks": ListField(
        {
            "epoch": ReportField(fields.parse_uuid, required=True),
            "version": ReportField(fields.check_integer, required=True),
            "instance": ReportField(check_instance, required=True),
            "at": ReportField(fields.parse_time, required=True),
        },
        most=MAX_NOTES,
    ),
    "reports": ListField(
        {
            "document": ReportField(check_object, required=True),
            "final": ReportField(check_flag, required=True),
            "epoch": ReportField(fields.parse_uuid),
            "token_id": ReportField(fields.check_integer, required=True),
            "services": ReportField(check_services, required=True),
            "at": ReportField(fields.parse_time, required=True),
        },
        most=MAX_REPORTS,
    ),
    "checks": ListField(
        {
            "caller": ReportField(check_caller, required=True),
            "since": ReportField(fields.parse_time, required=True),
            "until": ReportField(fields.parse_time, required=True),
            "switches": ListField(
                {
                    "switch": ReportField(fields.check_switch, required=True),
                    "allowed": ReportField(fields.check_count, required=True),
                    "blocked": ReportField(fields.check_count, required=True),
                },
                key="switch",
                required=True,
            ),
        },
        most=MAX_CALLERS,
    ),
}


class MessageReader:
    """Reads the body of a request: its statuses at once, its batches one at a time.

    Raise :class:`DomainError` or :class:`InvalidInput` if the body is not valid.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        found = fields.read_fields(MESSAGE, document)
        status = fields.read_fields(STATUS, found["status"], "status.")
        self.status = ProcessStatus(**status, is_relay=True)
        self.relays = tuple(
            ProcessStatus(**each, is_relay=True) for each in found.get("relays", ())
        )
        self._batches: list[Any] = found["batches"]

    def __iter__(self) -> Iterator[RelayBatch]:
        for index, document in enumerate(self._batches):
            yield _parse_batch(document, f"batches[{index}].")


def parse_message(body: bytes) -> RelayMessage:
    """Return the message in a body; raise :class:`DomainError` if it is not valid."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise DomainError(f"The body is not valid JSON in UTF-8: {error}.") from error
    if not isinstance(document, dict):
        raise DomainError("The body must be a JSON object.")
    reader = MessageReader(document)
    return RelayMessage(status=reader.status, relays=reader.relays, batches=tuple(reader))


def _parse_batch(document: Mapping[str, Any], path: str) -> RelayBatch:
    found = fields.read_fields(BATCH, document, path)
    relay = found["relay"]
    return RelayBatch(
        relay=relay,
        process=found["process"],
        seq=found["seq"],
        presences=[_parse_presence(each, relay) for each in found.get("presences", ())],
        acks=[Ack(**each) for each in found.get("acks", ())],
        reports=[
            RelayedReport(
                document=each["document"],
                is_final=each["final"],
                epoch=each.get("epoch"),
                token_id=each["token_id"],
                services=each["services"],
                at=each["at"],
            )
            for each in found.get("reports", ())
        ],
        checks=[_parse_counts(each) for each in found.get("checks", ())],
    )


def _parse_presence(found: Mapping[str, Any], relay: str) -> Presence:
    epoch, version, applied_at = (found.get(name) for name in ("epoch", "version", "applied_at"))
    if epoch is None or version is None or applied_at is None:
        epoch = version = None
    service = service_of(found["id"]) or ""
    return Presence(found["id"], service, found["heard_at"], epoch, version, applied_at, relay)


def _parse_counts(found: Mapping[str, Any]) -> RelayedCounts:
    switches = {each["switch"]: [each["allowed"], each["blocked"]] for each in found["switches"]}
    service = service_of_caller(found["caller"]) or ""
    counts = CallerCounts(service, found["since"], switches)
    return RelayedCounts(caller=found["caller"], until=found["until"], counts=counts)


def dump_report(report: RelayedReport) -> bytes:
    return orjson.dumps(
        {
            "document": report.document,
            "final": report.is_final,
            "epoch": report.epoch,
            "token_id": report.token_id,
            "services": report.services,
            "at": timestamp(report.at),
        }
    )


def dump_notes(
    presences: Iterable[Presence], acks: Iterable[Ack], checks: Iterable[RelayedCounts]
) -> bytes:
    """Return presences, acknowledgements and `/check` counts as fields of a batch."""
    return orjson.dumps(
        {
            "presences": [
                {
                    "id": each.id,
                    "heard_at": timestamp(each.heard_at),
                    "epoch": each.epoch,
                    "version": each.version,
                    "applied_at": timestamp_or_none(each.applied_at),
                }
                for each in presences
            ],
            "acks": [{**ack._asdict(), "at": timestamp(ack.at)} for ack in acks],
            "checks": [
                {
                    "caller": each.caller,
                    "since": timestamp(each.counts.since),
                    "until": timestamp(each.until),
                    "switches": [
                        {"switch": switch, "allowed": allowed, "blocked": blocked}
                        for switch, (allowed, blocked) in each.counts.switches.items()
                    ],
                }
                for each in checks
            ],
        }
    )


def assemble_batch(
    relay: str, process: UUID, seq: int, reports: Sequence[bytes], notes: Sequence[bytes]
) -> bytes:
    """Return a batch of serialized reports and notes."""
    batch: dict[str, Any] = {"relay": relay, "process": process, "seq": seq}
    for each in map(orjson.loads, notes):
        for name, values in each.items():
            batch.setdefault(name, []).extend(values)
    return orjson.dumps({**batch, "reports": [orjson.Fragment(each) for each in reports]})


def dump_batch(batch: RelayBatch) -> bytes:
    """Return a batch that was received, to pass it on."""
    notes = dump_notes(batch.presences, batch.acks, batch.checks)
    reports = [dump_report(each) for each in batch.reports]
    return assemble_batch(batch.relay, batch.process, batch.seq, reports, [notes])


def assemble_message(
    status: ProcessStatus, relays: Iterable[ProcessStatus], batches: Iterable[bytes]
) -> bytes:
    return orjson.dumps(
        {
            "status": _status_document(status),
            "relays": [_status_document(each) for each in relays],
            "batches": [orjson.Fragment(each) for each in batches],
        }
    )


def _status_document(status: ProcessStatus) -> dict[str, Any]:
    times = {name: timestamp(getattr(status, name)) for name in ("started_at", "heard_at")}
    return {**{name: getattr(status, name) for name in STATUS}, **times}
