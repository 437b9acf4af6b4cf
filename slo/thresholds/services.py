"""Services that create, change, remove and find threshold rules."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, NotFound
from slo.models import ThresholdRule
from slo.objectives import names
from slo.objectives.permissions import require_admin

from . import rules

MAX_RULES = 200
"""Most threshold rules; each takes one or two queries every ten seconds."""


def put_rule(
    *,
    name: str,
    fields: Mapping[str, Any],
    actor: Actor,
    now: datetime,
    reason: str = "",
    version: int | None = None,
) -> tuple[ThresholdRule, bool]:
    """Create a rule, or replace its fields; return the rule, and True if it is new.

    `fields` are validated by :func:`rules.validate`; equal fields change nothing. `version`, if
    given, must be the rule's present version. Raise :class:`Forbidden`, :class:`InvalidInput` or
    :class:`Conflict`.
    """
    require_admin(actor)
    document = rules.validate(name, fields)
    with transaction.atomic():
        rule, before = write_rule(name, document, now, version=version)
        if before != document:
            row = audit_change(name, before, document, reason.strip())
            audit.record(**row, actor=actor, now=now)
        return rule, before is None


def write_rule(
    name: str, document: rules.Document, now: datetime, *, version: int | None = None
) -> tuple[ThresholdRule, rules.Document | None]:
    """Create a rule from a validated document, or replace its fields, in a transaction.

    Return the rule, and its document before, None if it is new. The caller writes the audit row.
    """
    rule = _lock_rule(name)
    if version is not None and (rule is None or rule.version != version):
        raise Conflict("Someone else changed it. Reload, then make your change again.")
    if rule is None:
        return _create(name, document, now), None
    before = rules.to_document(rule)
    if before != document:
        rules.apply_document(rule, document)
        rule.version += 1
        rule.changed_at = now
        rule.save()
    return rule, before


def audit_change(
    name: str, before: rules.Document | None, after: rules.Document, reason: str
) -> dict[str, Any]:
    """Return the arguments of :func:`audit.record` about a created or changed rule."""
    return {
        "action": "threshold.created" if before is None else "threshold.changed",
        "target": audit_target(name),
        "reason": reason,
        "before": before,
        "after": after,
    }


def remove_rule(*, name: str, reason: str = "", actor: Actor, now: datetime) -> ThresholdRule:
    """Remove a rule; its open alerts resolve at the next evaluation.

    Raise :class:`Forbidden` or :class:`NotFound`.
    """
    require_admin(actor)
    with transaction.atomic():
        rule = find_rule(name, lock=True)
        pk = rule.pk
        rule.delete()
        rule.pk = pk
        audit.record(
            actor=actor,
            action="threshold.removed",
            target=audit_target(name),
            reason=reason.strip(),
            before=rules.to_document(rule),
            now=now,
        )
        return rule


def find_rule(name: str, *, lock: bool = False) -> ThresholdRule:
    """Return the rule of this name, and lock its row if `lock`. Raise :class:`NotFound`."""
    rows = ThresholdRule.objects.filter(name=name)
    rows = rows.select_for_update(no_key=True) if lock else rows
    rule = rows.first() if names.is_valid_name(name, rules.RESERVED_NAMES) else None
    if rule is None:
        raise NotFound("This threshold rule doesn't exist. Use PUT to create it.")
    return rule


def require_new(name: str) -> None:
    """Raise :class:`Conflict` if there is a threshold rule of this name."""
    present = ThresholdRule.objects.filter(name=name)
    if names.is_valid_name(name, rules.RESERVED_NAMES) and present.exists():
        raise Conflict(f"A rule named {name} already exists. Use PUT to change it.")


def require_capacity(more: int) -> None:
    """Raise :class:`Conflict` if `more` rules would exceed the limit."""
    if more and ThresholdRule.objects.count() + more > MAX_RULES:
        raise Conflict(f"At most {MAX_RULES} threshold rules are allowed.")


def audit_target(name: str) -> str:
    return f"threshold:{name}"


def _create(name: str, document: Mapping[str, Any], now: datetime) -> ThresholdRule:
    require_capacity(1)
    new = ThresholdRule(name=name, changed_at=now)
    rules.apply_document(new, document)
    ThresholdRule.objects.bulk_create([new], ignore_conflicts=True)
    rule = _lock_rule(name)
    if rule is None or rule.changed_at != now or rules.to_document(rule) != document:
        raise Conflict(f"Someone else just created {name}. Open it first.")
    return rule


def _lock_rule(name: str) -> ThresholdRule | None:
    return ThresholdRule.objects.select_for_update(no_key=True).filter(name=name).first()
