"""Functions that change trip policies, with audit rows.

They take their locks in the same order as trip requests, so that no request is decided on a partial
change.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.core import canonical
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput, NotFound
from controlplane.core.outbox import services as outbox
from controlplane.core.roles import Power
from switches import publication
from switches.models import TripPolicy
from switches.scopes import GLOBAL, SCOPES

from . import history, texts
from .decision import AUTOMATIC

AUDIT_TARGET = "trip-policies"
DEFAULTS: Mapping[str, Any] = {"budget_per_hour": 10, "longest_minutes": 1440, "response": ""}
MAX_ROWS, MAX_PATTERNS = 100, 20
MAX_LENGTHS = {"title": 200, "response": 200, "pattern": 120}
MAX_VALUES = {"budget_per_hour": 1000, "longest_minutes": 30 * 24 * 60}
FIELDS = ("trigger", "title", "sources", "scopes", "gate", "response", *MAX_VALUES)
TRIGGER = r"^[a-z0-9][a-z0-9_-]{0,59}$"
_TRIGGER = re.compile(TRIGGER)


def replace_policies(
    *, rows: Sequence[Mapping[str, Any]], actor: Actor, now: datetime
) -> list[TripPolicy]:
    """Replace all trip policies; raise :class:`InvalidInput` with paths such as `rows.2.gate`.

    Rows are matched to policies by `trigger`; policies without a row are removed.
    """
    actor.require_power(Power.ADMINISTER)
    new_rows = [{**DEFAULTS, **row} for row in rows]
    check_rows(new_rows)
    with transaction.atomic():
        history.lock_trips()
        publication.lock()
        if audit_row := write_policies(new_rows, actor, now):
            audit.record(**audit_row, actor=actor, now=now)
        return history.list_policies()


def write_policies(
    new_rows: Sequence[Mapping[str, Any]], actor: Actor, now: datetime
) -> dict[str, Any] | None:
    """Replace all policies by validated rows, and announce the change.

    The caller holds the locks of trips and of the publication. Return action, target, before and
    after of the audit row, which the caller writes; None if nothing changed.
    """
    before = {row.trigger: row for row in history.list_policies()}
    old_rows = [policy_fields(row) for row in before.values()]
    for position, fields in enumerate(new_rows):
        present = before.pop(fields["trigger"], None) or TripPolicy()
        for name in FIELDS:
            setattr(present, name, fields[name])
        present.position, present.changed_at = position, now
        present.save()
    TripPolicy.objects.filter(pk__in=[row.pk for row in before.values()]).delete()
    after = [policy_fields(row) for row in history.list_policies()]
    return _announce_change(old_rows, after, actor, now)


def put_policy(
    *,
    trigger: str,
    fields: Mapping[str, Any],
    position: int,
    digest: str = "",
    actor: Actor,
    now: datetime,
) -> None:
    """Change the trip policy `trigger` (if empty, add one); `position` counts from 1.

    `digest` is the :func:`policy_digest` of the displayed policy. Raise :class:`Conflict` if the
    policy was changed or moved since.
    """
    actor.require_power(Power.ADMINISTER)
    with transaction.atomic():
        history.lock_trips()
        publication.lock()
        rows = [policy_fields(row) for row in history.list_policies()]
        others = [row for row in rows if row["trigger"] != trigger]
        present = (
            policy_digest(row, n) for n, row in enumerate(rows, 1) if row["trigger"] == trigger
        )
        if digest and digest not in present:
            raise Conflict("Someone else changed this policy. Open it again.")
        if not trigger and any(row["trigger"] == fields.get("trigger") for row in rows):
            raise InvalidInput({"trigger": ["A policy with this name already exists."]})
        place = min(max(position, 1), len(others) + 1) - 1
        others.insert(place, {**DEFAULTS, **fields})
        try:
            replace_policies(rows=others, actor=actor, now=now)
        except InvalidInput as error:
            prefix = f"rows.{place}."
            raise InvalidInput(
                {name.removeprefix(prefix): texts for name, texts in error.errors.items()}
            ) from error


def remove_policy(*, trigger: str, actor: Actor, now: datetime) -> None:
    """Remove one trip policy; raise :class:`InvalidInput` if it is the last."""
    actor.require_power(Power.ADMINISTER)
    with transaction.atomic():
        history.lock_trips()
        publication.lock()
        rows = [policy_fields(row) for row in history.list_policies()]
        others = [row for row in rows if row["trigger"] != trigger]
        if len(others) == len(rows):
            raise NotFound(f"The policy {trigger!r} doesn't exist.")
        replace_policies(rows=others, actor=actor, now=now)


def policy_fields(row: TripPolicy) -> dict[str, Any]:
    """Return a trip policy as JSON values for the API, forms and audit trail."""
    return {name: getattr(row, name) for name in FIELDS}


def policy_digest(fields: Mapping[str, Any], position: int) -> str:
    return canonical.digest({**fields, "position": position})


def check_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise :class:`InvalidInput` unless these are valid policies, with paths `rows.2.gate`."""
    errors: dict[str, list[str]] = {}
    if not 1 <= len(rows) <= MAX_ROWS:
        errors["rows"] = [
            f"Between 1 and {MAX_ROWS} policies. To have people decide everything, set every gate"
            " to person."
        ]
    triggers: set[str] = set()
    for place, row in enumerate(rows):
        problems = _find_problems(row)
        trigger = row.get("trigger")
        if isinstance(trigger, str) and trigger in triggers:
            problems["trigger"] = "Two policies have this name."
        triggers.add(str(trigger))
        errors.update({f"rows.{place}.{name}": [text] for name, text in problems.items()})
    if errors:
        raise InvalidInput(errors)


def _find_problems(row: Mapping[str, Any]) -> dict[str, str]:
    problems = {}
    if not isinstance(row.get("trigger"), str) or not _TRIGGER.fullmatch(row["trigger"]):
        problems["trigger"] = "Must be 1 to 60 of a-z 0-9 - _, beginning with a letter or a digit."
    for name, least in (("title", 1), ("response", 0)):
        if not _is_text(row.get(name), least, MAX_LENGTHS[name]):
            problems[name] = f"Must be a line of {least} to {MAX_LENGTHS[name]} characters."
    sources = row.get("sources")
    if (
        not isinstance(sources, list)
        or not 1 <= len(sources) <= MAX_PATTERNS
        or not all(_is_text(pattern, 1, MAX_LENGTHS["pattern"]) for pattern in sources)
    ):
        problems["sources"] = (
            f"Must be 1 to {MAX_PATTERNS} patterns of sources, such as srm or alertmanager:Leak*, "
            f"each of at most {MAX_LENGTHS['pattern']} characters; * stands for any."
        )
    for name, largest in MAX_VALUES.items():
        value = row.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= largest:
            problems[name] = f"Must be a whole number from 1 to {largest:,}."
    if row.get("gate") not in TripPolicy.Gate.values:
        problems["gate"] = f"Must be one of {', '.join(TripPolicy.Gate.values)}."
    scopes = row.get("scopes")
    if not isinstance(scopes, list) or not scopes or not all(s in SCOPES for s in scopes):
        problems["scopes"] = f"Must be one or more of {', '.join(SCOPES.names)}."
    elif len(set(scopes)) < len(scopes):
        problems["scopes"] = "List each scope once."
    elif row.get("gate") == AUTOMATIC and GLOBAL.name in scopes:
        problems["scopes"] = (
            "The global switch is never tripped automatically. Omit global, or set the gate to"
            " person."
        )
    return problems


def _is_text(text: Any, min_length: int, max_length: int) -> bool:
    is_clean = isinstance(text, str) and texts.clean_text(text) == text
    return is_clean and min_length <= len(text) <= max_length


def _announce_change(
    was: list[dict[str, Any]], is_now: list[dict[str, Any]], actor: Actor, now: datetime
) -> dict[str, Any] | None:
    if was == is_now:
        return None
    before = {row["trigger"]: row for row in was}
    after = {row["trigger"]: row for row in is_now}
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    names = ", ".join(sorted(changed) or ["the order"])
    outbox.announce(
        event="trip_policy.changed",
        event_key=f"trip_policy:{now.isoformat()}",
        facts={"by": actor.label, "said": names, "path": "/trips/"},
        now=now,
    )
    return {
        "action": "trip_policy.changed",
        "target": AUDIT_TARGET,
        "before": {
            "order": list(before),
            **{name: before[name] for name in changed & before.keys()},
        },
        "after": {"order": list(after), **{name: after[name] for name in changed & after.keys()}},
    }
