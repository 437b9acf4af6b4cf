"""Life cycle of alerts: opening, continuing, resolving and acknowledging them."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

import orjson
from django.db import transaction
from django.db.models import Q

from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.escalations import services as escalation
from controlplane.core.json_values import require_readable
from controlplane.core.live.change_notices import notify_changed
from controlplane.core.sql import execute, fetch_all
from slo.arithmetic.hysteresis import AlertKey, FiringRule, OpenAlert, plan_changes
from slo.arithmetic.minutes import due_minute
from slo.models import Alert, EvaluatedMinute
from slo.models.alerts import WORST_FIRST

from . import actions, groups, notifications

MAX_OPENED = 2000
"""Most alerts to open in one evaluation; the others open at the next evaluation."""
MAX_OUTPUT_LENGTH = 500

_CONTINUE = """
    UPDATE slo_alert AS alert SET firing_at = %(now)s, latest = seen.evidence, latest_at = %(now)s
    FROM unnest(%(ids)s::bigint[], %(evidence)s::jsonb[]) AS seen (id, evidence)
    WHERE alert.id = seen.id
"""
_POSTPONE = """
    UPDATE slo_alert AS alert SET firing_at = seen.firing_at
    FROM unnest(%(ids)s::bigint[], %(times)s::timestamptz[]) AS seen (id, firing_at)
    WHERE alert.id = seen.id
"""
EVALUATION_LOCK, ALERTS_LOCK, THRESHOLDS_LOCK = 1, 2, 3
_LOCK_SPACE = 0x510  # First key of the two-key advisory locks; used nowhere else.


def update_alerts(
    *,
    kind: str,
    firing: Sequence[FiringRule],
    unknown: Collection[AlertKey],
    gone: Mapping[AlertKey, str],
    before: datetime,
    missed: timedelta = timedelta(0),
    now: datetime,
) -> int:
    """Open and resolve alerts of a kind, `burn` or `threshold`; return how many changed.

    The caller has evaluated all rules of the kind. `firing` rules open alerts; alerts with
    `unknown` keys stay as they are. `gone` maps the keys of alerts to resolve at once to the
    reason. `before` is the time of the previous evaluation, and `missed` the length of the time
    before it in which nothing was evaluated. Call :func:`notify_and_act` next, in the same
    transaction.
    """
    execute("SELECT pg_advisory_xact_lock(%s, %s)", [_LOCK_SPACE, ALERTS_LOCK])
    rows = Alert.objects.filter(kind=kind, resolved_at__isnull=True)
    open_alerts = [
        OpenAlert(pk, (rule, subject), firing_at)
        for pk, rule, subject, firing_at in rows.values_list("pk", "rule", "subject", "firing_at")
    ]
    ended = {one.id: gone[one.key] for one in open_alerts if one.key in gone}
    lasting = [one for one in open_alerts if one.key not in gone]
    lasting_rules = [one for one in firing if one.key not in gone]
    changes = plan_changes(lasting_rules, unknown, lasting, at=now, before=before, missed=missed)
    if changes.continued:
        evidence = [orjson.dumps(dict(one.evidence)).decode() for one in changes.continued.values()]
        execute(_CONTINUE, {"now": now, "ids": [*changes.continued], "evidence": evidence})
        _acknowledge_known(changes.continued, now)
    if changes.postponed:
        times = [*changes.postponed.values()]
        execute(_POSTPONE, {"ids": [*changes.postponed], "times": times})
    opened = Alert.objects.bulk_create(
        Alert(  # The fields of a firing rule are named like the alert's columns.
            **{**vars(one), "summary": one.summary[:MAX_OUTPUT_LENGTH]},
            kind=kind,
            opened_at=now,
            firing_at=now,
            latest=one.evidence,
            latest_at=now,
            acknowledged_at=now if one.acknowledged_by else None,
        )
        for one in changes.opened[:MAX_OPENED]
    )
    groups.group_opened_alerts(opened, now)
    ended |= dict.fromkeys(changes.resolved, "Its rule has not fired for two minutes.")
    for why in sorted(set(ended.values())):
        ids = [pk for pk, reason in ended.items() if reason == why]
        Alert.objects.filter(pk__in=ids).update(resolved_at=now, resolved_because=why)
    if ended:
        actions.end_actions(ended, now)
    if kind == Alert.Kind.BURN:
        over = (one.key[1] for one in open_alerts if one.id in ended)
        notify_changed("slo", *{*(one.subject for one in opened), *over})
    return len(opened) + len(ended)


def notify_and_act(kind: str, now: datetime) -> None:
    """Run the actions of newly opened alerts, and notify about opened and resolved alerts.

    Notifications of burn alerts wait until the evaluation has caught up with the present minute.
    """
    untold = Alert.objects.filter(kind=kind, notified_at__isnull=True, resolved_at__isnull=True)
    opened = list(untold.select_related("slo", "threshold").order_by("pk"))
    actions.start_escalations(opened, now)
    planned = [action for alert in opened for action in actions.plan_alert_actions(alert)]
    actions.perform_actions(planned, now)
    is_late = not EvaluatedMinute.objects.filter(minute__gte=due_minute(now)).exists()
    notifications.send_notifications(now, except_kind=Alert.Kind.BURN if is_late else "")


@transaction.atomic
def acknowledge_alert(*, alert_id: int, actor: Actor, now: datetime, comment: str = "") -> Alert:
    """Acknowledge an open alert, which silences its escalation for 24 hours.

    Raise :class:`Forbidden`, :class:`InvalidInput` for an invalid comment, :class:`NotFound`, or
    :class:`Conflict` if the alert has resolved.
    """
    actor.require("slo:write")
    require_readable(comment=comment)
    alert = Alert.objects.select_for_update().filter(pk=alert_id).first()
    if alert is None:
        raise NotFound(f"There is no alert {alert_id}.")
    if alert.resolved_at is not None:
        raise Conflict(f"Alert {alert_id} has resolved; there is nothing to acknowledge.")
    authority.require(actor, Action.EXTEND, alert.resource)
    _acknowledge([alert], actor, now, comment)
    return alert


@transaction.atomic
def acknowledge_alerts(
    *, alert_ids: Collection[int], actor: Actor, now: datetime, comment: str = ""
) -> list[Alert]:
    """Acknowledge those of the alerts that are open and that nobody has acknowledged.

    Each gets an audit row of its own. Raise :class:`Forbidden`, :class:`InvalidInput` for an
    invalid comment, :class:`NotFound` if one does not exist, or :class:`Conflict` if all have
    resolved or are acknowledged.
    """
    actor.require("slo:write")
    require_readable(comment=comment)
    # Locked in the order of their ids, so that two requests can't deadlock.
    alerts = list(Alert.objects.select_for_update().filter(pk__in=alert_ids).order_by("pk"))
    if missing := set(alert_ids) - {one.pk for one in alerts}:
        raise NotFound(f"There is no alert {min(missing)}.")
    for resource in sorted({one.resource for one in alerts}):
        authority.require(actor, Action.EXTEND, resource)
    waiting = [one for one in alerts if one.resolved_at is None and one.acknowledged_at is None]
    if not waiting:
        names = {one.acknowledged_by for one in alerts if one.acknowledged_by}
        by = f" by {', '.join(sorted(names))}" if names else ""
        raise Conflict(f"These alerts have resolved or are already acknowledged{by}.")
    _acknowledge(waiting, actor, now, comment)
    return waiting


def find_group(group_id: int) -> list[Alert]:
    """Return the open alerts of a group, worst first; raise :class:`NotFound` without any."""
    rows = Alert.objects.filter(Q(group=group_id) | Q(pk=group_id, group=None), resolved_at=None)
    found = list(rows.select_related("slo", "threshold").order_by(WORST_FIRST, "opened_at", "pk"))
    if not found:
        raise NotFound(f"There is no open alert in group {group_id}.")
    return found


def _acknowledge(alerts: Sequence[Alert], actor: Actor, now: datetime, comment: str) -> None:
    rows = []
    for alert in alerts:
        before = alert.acknowledged_by
        alert.acknowledged_at, alert.acknowledged_by = now, actor.label
        alert.acknowledged_because = comment.strip()
        alert.save(update_fields=["acknowledged_at", "acknowledged_by", "acknowledged_because"])
        subject = notifications.alert_subject(alert)
        escalation.acknowledge(subject=subject, actor=actor, now=now)
        rows.append(
            {
                "actor": actor,
                "action": "alert.acknowledged",
                "target": subject,
                "reason": comment.strip(),
                "before": {"acknowledged_by": before or None},
                "after": {"rule": alert.rule, "subject": alert.subject, "severity": alert.severity},
                "now": now,
            }
        )
    if names := {one.subject for one in alerts if one.kind == Alert.Kind.BURN}:
        notify_changed("slo", *names)
    audit.record_many(rows)


def _acknowledge_known(continued: Mapping[int, FiringRule], now: datetime) -> None:
    """Acknowledge alerts that a person knowingly caused, as by engaging a switch."""
    labels = {pk: one.acknowledged_by for pk, one in continued.items() if one.acknowledged_by}
    for alert in Alert.objects.filter(pk__in=labels, acknowledged_at__isnull=True).order_by("pk"):
        alert.acknowledged_at, alert.acknowledged_by = now, labels[alert.pk]
        alert.save(update_fields=["acknowledged_at", "acknowledged_by"])
        escalation.close(subject=notifications.alert_subject(alert), now=now)


def try_lock(lock: int) -> bool:
    """Take an advisory lock until the transaction ends; return False if another process has it."""
    ((is_free,),) = fetch_all("SELECT pg_try_advisory_xact_lock(%s, %s)", [_LOCK_SPACE, lock])
    return bool(is_free)
