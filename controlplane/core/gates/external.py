"""External gates: verdicts that smoke tests, pipelines and other programs report.

The observation with the latest time counts, in whatever order reports arrive. A `fail` since the
step began counts even if an `ok` follows, because both may arrive between two evaluations.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import orjson
from django.db import transaction

from controlplane.core import authority, canonical
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import InvalidInput, NotFound
from controlplane.core.sql import fetch_all

from .fields import GateField
from .kinds import GateKind
from .models import ExternalVerdict
from .questions import FAIL, PASS, GateAnswer, GateQuestion
from .verdicts import (
    FRESH,
    MAX_KEPT_BYTES,
    Observation,
    build_no_data,
    explain_staleness,
    format_time,
    get_explanation,
    truncate_evidence,
)

OK = "ok"
VERDICTS = (OK, FAIL)
NAME = re.compile(r"[A-Za-z0-9._-]{1,120}")
WRONG_NAME = "Must be 1 to 120 letters, digits, `.`, `_` or `-`."
MAX_LABEL_LENGTH = 200
MAX_DETAILS = 4
MAX_DETAIL_LENGTH = 60
EXTERNAL_GATES = "external-gates"
"""Name of the list of external gates."""

# Evidence is read for each gate every second, so long evidence is left out. Values that are large
# in storage are not even decompressed.
_OBSERVATIONS = """
    SELECT name, verdict, observed_at, "by", failed_at,
           CASE WHEN length(written.text) <= %(longest)s THEN written.text END
    FROM core_externalverdict, LATERAL (
        SELECT CASE WHEN pg_column_size(evidence) <= %(longest)s THEN evidence::text END AS text
        OFFSET 0
    ) AS written
    WHERE name = ANY(%(names)s)
"""


@dataclass(frozen=True)
class RecordedVerdict:
    """A gate's stored verdict after a report, which is `accepted` unless a later one was stored."""

    verdict: ExternalVerdict
    accepted: bool


@transaction.atomic
def record_verdict(
    *,
    name: str,
    verdict: str,
    evidence: Mapping[str, Any],
    observed_at: datetime | None = None,
    actor: Actor,
    now: datetime,
) -> RecordedVerdict:
    """Store the verdict `ok` or `fail` of an external gate, observed now by default.

    Writes an audit row if the verdict changes. Raises :class:`InvalidInput` for invalid values and
    :class:`Forbidden` without the scope `gates:write`, and for tokens that are limited to some
    resources, as a gate is none.
    """
    actor.require("gates:write")
    authority.require_in_limits(actor)
    at = _check_report(name, verdict, evidence, observed_at, now)
    fields = {
        "verdict": verdict,
        "evidence": dict(evidence),
        "observed_at": at,
        "failed_at": _latest_failure(verdict, at, None, now),
        "received_at": now,
        "by": actor.label[:MAX_LABEL_LENGTH],
    }
    record_audit = partial(
        audit.record,
        actor=actor,
        action="gate.reported",
        target=f"gate:{name}",
        now=now,
        after={"verdict": verdict, "observed_at": at, "evidence": truncate_evidence(evidence)},
    )
    rows = ExternalVerdict.objects.select_for_update()
    row, is_first = rows.get_or_create(name=name, defaults=fields)
    before = None if is_first else {"verdict": row.verdict}
    if not is_first:
        failed_at = _latest_failure(verdict, at, row.failed_at, now)
        if at < row.observed_at <= now + FRESH:
            if failed_at == at != row.failed_at:
                row.failed_at = at  # Record the failure, though a later verdict is stored.
                row.save(update_fields=["failed_at"])
                record_audit(before=before)
            return RecordedVerdict(row, accepted=False)
        fields["failed_at"] = failed_at
        for field, value in fields.items():
            setattr(row, field, value)
        row.save()
    if before != {"verdict": verdict}:
        record_audit(before=before)
    return RecordedVerdict(row, accepted=True)


def get_verdict(name: str) -> ExternalVerdict:
    """Return the latest verdict of a gate. Raise :class:`NotFound` if there is none."""
    stored = ExternalVerdict.objects.filter(pk=name).first() if NAME.fullmatch(name) else None
    if stored is None:
        raise NotFound(f"No observation of the gate {name} has been reported yet.")
    return stored


def check_name(value: Any) -> str:
    """Return the gate's name. Raise ValueError if it is invalid."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise ValueError(WRONG_NAME)
    return value


def find_observations(
    questions: Sequence[GateQuestion], _now: datetime
) -> list[Observation | None]:
    """Return the latest reported verdict of each external gate, None without one; one query."""
    names = [str(one.spec.get("gate", "")) for one in questions]
    parameters = {"names": sorted(set(names)), "longest": MAX_KEPT_BYTES}
    rows = fetch_all(_OBSERVATIONS, parameters)
    observations = {}
    for name, verdict, observed_at, by, failed_at, text in rows:
        evidence = {"left_out": f"too long to show; see GET /api/v1/gates/{name}"}
        if text is not None:
            evidence = orjson.loads(text)
        observations[name] = Observation(verdict, observed_at, evidence, by, failed_at)
    return [observations.get(name) for name in names]


def evaluate(question: GateQuestion, observation: Observation | None, now: datetime) -> GateAnswer:
    """Evaluate an external gate: it fails if it failed since the step began.

    Otherwise its latest verdict counts; if that is missing or stale, the answer is "no data". A
    failure since the step began counts at any age, because evaluations may have missed it.
    """
    if observation is None:
        return build_no_data(
            question, f"no observation of {question.spec.get('gate')} has been reported yet", {}
        )
    evidence = {
        "said": observation.verdict,
        "by": observation.by,
        "observed_at": canonical.timestamp(observation.observed_at),
        "evidence": dict(observation.evidence),
    }
    failed_at = observation.failed_at
    if failed_at is not None and question.since <= failed_at <= now + FRESH:
        if (observation.verdict, observation.observed_at) == (FAIL, failed_at):
            return GateAnswer(FAIL, {**evidence, "why": f"{observation.by} reported {FAIL}"})
        moment = format_time(failed_at)
        why = (
            f"a failure was observed at {moment}, since the step began; later observations don't"
            " undo it"
        )
        evidence["failed_at"] = canonical.timestamp(failed_at)
        return GateAnswer(FAIL, {**evidence, "why": why})
    if why := explain_staleness(question, observation, now):
        return build_no_data(question, why, evidence)
    if observation.verdict == OK:
        return GateAnswer(PASS, evidence)
    return GateAnswer(FAIL, {**evidence, "why": f"{observation.by} reported {observation.verdict}"})


def describe_finding(_spec: Mapping[str, Any], evidence: Mapping[str, Any]) -> str:
    """Return `token:ci reported fail (12 errors)`, with short values of the reported evidence."""
    found = get_explanation(evidence)
    if not found and "said" in evidence:
        found = f"{evidence['by']} reported {evidence['said']}"
    details = ", ".join(_list_details(evidence.get("evidence")))
    return f"{found} ({details})" if details else found


KIND = GateKind(
    name="external",
    label="External gate",
    summary="external gate {gate}",
    passes_when="your program has reported ok (`POST /api/v1/gates/{name}`)",
    fields=(
        GateField("gate", "Name", check_name, placeholder="smoke-tests", options=EXTERNAL_GATES),
    ),
    look_up=find_observations,
    evaluate=evaluate,
    position=50,
    finding=describe_finding,
)


def _list_details(reported: Any) -> list[str]:
    """Return the first short values that a program reported, numbers first."""
    if not isinstance(reported, Mapping):
        return []
    details = [
        (name, value)
        for name, value in reported.items()
        if name != "left_out"
        and isinstance(value, int | float | str)
        and len(str(value)) <= MAX_DETAIL_LENGTH
    ]
    details.sort(key=lambda detail: isinstance(detail[1], str))
    return [_format_detail(name.replace("_", " "), value) for name, value in details[:MAX_DETAILS]]


def _format_detail(name: str, value: float | str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,} {name}"
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def _latest_failure(
    verdict: str, at: datetime, before: datetime | None, now: datetime
) -> datetime | None:
    """Return the time of a gate's latest failure after a report of `verdict`, observed at `at`.

    `before` is the latest failure so far. It stays if `verdict` is no failure, or was observed more
    than 60 s ago.
    """
    if before is not None and before > now + FRESH:
        before = None  # From before the clock was set back.
    if verdict != FAIL or now - at > FRESH:
        return before
    return at if before is None else max(before, at)


def _check_report(
    name: str,
    verdict: str,
    evidence: Mapping[str, Any],
    observed_at: datetime | None,
    now: datetime,
) -> datetime:
    """Return a report's observation time, at most now. Raise :class:`InvalidInput` if invalid."""
    errors: dict[str, list[str]] = {}
    if not NAME.fullmatch(name):
        errors["name"] = [WRONG_NAME]
    if verdict not in VERDICTS:
        errors["verdict"] = [f"Must be {' or '.join(VERDICTS)}."]
    if len(canonical.dumps(evidence)) > canonical.MAX_EVIDENCE_BYTES:
        errors["evidence"] = [canonical.TOO_MUCH_EVIDENCE]
    if observed_at is not None and observed_at > now + FRESH:
        errors["observed_at"] = [
            f"Is more than {FRESH.seconds} seconds ahead of {canonical.timestamp(now)}, the"
            " server's time. Check your clock, or leave it out."
        ]
    if errors:
        raise InvalidInput(errors)
    return now if observed_at is None else min(observed_at.astimezone(UTC), now)
