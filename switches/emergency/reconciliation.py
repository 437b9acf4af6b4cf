"""Reconciliation: each emergency order becomes an ordinary episode, once the database is back.

Data planes insert the orders that they accepted, and the tick `emergency.reconcile` closes each in
one transaction that advances the published version. A data plane serves an order until it has a
snapshot in which the order is closed, so its switch is blocked without a gap.

Safety rules can't be evaluated on data planes. An order stands against them, as break-glass does,
and leaves a review. Its expiry is not shortened to that of break-glass: the data planes have told
services and people when it ends, and at its end the switch stays engaged (`hold`) anyway, so a
shorter expiry would only call people early about a switch whose review calls them already.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.expressions import Combinable

from controlplane.core.actions import Action
from controlplane.core.actors import Actor, system_actor
from controlplane.core.approvals import reviews
from controlplane.core.canonical import timestamp
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.escalations import services as escalation
from switches import publication, reminders
from switches.episodes import batches, changes, live_drills
from switches.expiry import MIN_DURATION, Expiry
from switches.models import EmergencyOrder, Episode, OnExpiry, Publication, Switch, SwitchState
from switches.rules import break_glass, guard
from switches.services import permanent_approval
from switches.services.engage import open_episode
from switches.services.engagement import Engagement
from switches.services.reengage import reengage
from switches.services.registration import register_and_lock

from . import notifications
from .orderers import OrderRefused, find_actor
from .orders import Order, derive_id, parse_order

MAX_AT_ONCE = 100
MAX_AGE = timedelta(days=400)
"""Older orders are refused: the rows that could show that they were reconciled are deleted."""
REFUSED_BLOCKS_FOR = timedelta(minutes=10)
SYSTEM = system_actor("emergency")
TO_DO = "If {} must stay blocked, engage it now: the block of this order ends by itself."

State = EmergencyOrder.State


def reconcile_orders(now: datetime) -> int:
    """Reconcile orders, each in its own transaction, and return how many were.

    Safe to run concurrently: each order is read again under the lock of the publication row.
    """
    # Engagements first: a withdrawal waits for its order, and may be dated before it.
    due = due_orders(now).order_by("action", "at", "pk").values_list("pk", flat=True)
    return batches.process_each(
        list(due[:MAX_AT_ONCE]),
        lambda pk: _reconcile_order(pk, now),
        "some emergency orders could not be reconciled",
    )


def due_orders(now: datetime | Combinable) -> QuerySet[EmergencyOrder]:
    """Return orders that are not reconciled, and refused orders whose block has to end."""
    is_due = Q(state=State.RECEIVED) | Q(blocks_until__lte=now)
    return EmergencyOrder.objects.filter(is_due, closed_at__isnull=True)


@retry_if_ended
@transaction.atomic
def _reconcile_order(pk: UUID, now: datetime) -> bool:
    head = publication.lock_with_teams()
    row = due_orders(now).select_for_update().filter(pk=pk).first()
    if row is None:
        return False
    if row.state == State.REFUSED:
        _end_refusal(head, row, now)
        return True
    try:
        order = _read_order(row, now)
        actor = find_actor(order, _required_action(row))
    except OrderRefused as refusal:
        _refuse(head, row, str(refusal), now)
        return True
    if order.withdraws is not None:
        return _reconcile_withdrawal(head, row, actor, now)
    if _is_withdrawn(row, now):
        _close(row, State.WITHDRAWN, publication.advance(head, now), now)
        notifications.record(notifications.ACCEPTED, row, actor, now, reason=row.reason)
    else:
        _engage(head, row, order, actor, now)
    return True


def _read_order(row: EmergencyOrder, now: datetime) -> Order:
    document = {
        "id": str(row.pk),
        "action": row.action,
        "switch": row.switch,
        "order": str(row.order_id) if row.order_id else None,
        "reason": row.reason,
        "expires_in": row.expires_in,
        "on_expiry": OnExpiry.HOLD.value,
        "by": {"type": row.by_type, "name": row.by_name, "id": row.by_id},
        "at": timestamp(row.at),
        "plane": row.plane,
    }
    try:
        order = parse_order(document)
    except (ValueError, TypeError, LookupError) as error:
        raise OrderRefused(f"It is not a valid order: {error}.") from error
    if order.at < now - MAX_AGE:
        raise OrderRefused(f"It is more than {MAX_AGE.days} days old.")
    return order


def _is_withdrawn(row: EmergencyOrder, now: datetime) -> bool:
    """Return True if somebody with the right to do so withdrew the order.

    An id may have been given to two orders, of which one is stored under an id of its own. A
    withdrawal names the id that was given, and the switch of the order that it withdraws.
    """
    for withdrawal in EmergencyOrder.objects.filter(
        order_id__isnull=False, switch=row.switch
    ).order_by("at", "pk"):
        if row.pk not in _withdrawn_ids(withdrawal) or not _may_withdraw(withdrawal, row):
            continue
        try:
            find_actor(_read_order(withdrawal, now), _required_action(withdrawal))
        except OrderRefused:
            continue
        return True
    return False


def _withdrawn_ids(withdrawal: EmergencyOrder) -> list[UUID]:
    """Return the ids under which the order that a withdrawal withdraws may be stored."""
    given = withdrawal.order_id
    return [] if given is None else [given, derive_id(given, withdrawal.switch)]


def _required_action(row: EmergencyOrder) -> Action:
    """Return the action of an order: to withdraw another's order is a release of the switch."""
    named = EmergencyOrder.objects.filter(pk__in=_withdrawn_ids(row), switch=row.switch)
    others = named.exclude(by_type=row.by_type, by_id=row.by_id)
    return Action.RELEASE if others.exists() else Action.ENGAGE


def _may_withdraw(withdrawal: EmergencyOrder, row: EmergencyOrder) -> bool:
    """Return False for a withdrawal by a relay of an order that others accepted."""
    return withdrawal.relay in ("", row.relay)


def _engage(
    head: Publication, row: EmergencyOrder, order: Order, actor: Actor, now: datetime
) -> None:
    scope, _, key = order.switch.partition(":")
    switch = register_and_lock(scope, key, now=now)
    present = changes.lock_open_episode(switch)
    # A data plane's clock may be ahead.
    since = min(order.at, now)
    expiry = replace(order, at=since).expiry
    if present is not None and present.state == SwitchState.ENGAGED:
        _attach(head, row, switch, present, expiry, actor, now)
        return
    live_drills.supersede(switch, f"{actor.label} engaged the switch.", now)
    facts = notifications.order_facts(row)
    evidence, more = {"emergency_order": facts}, {"emergency": facts}
    if present is not None:
        # The order may have expired before this episode began.
        ends = max(expiry.expires_at, present.engaged_at + MIN_DURATION)
        expiry = replace(expiry, expires_at=ends)
        done = reengage(
            *(head, switch, present, order.reason, expiry, evidence, actor, now),
            keeps_expiry=True,
            more=more,
        )
    else:
        rules = [refusal.rule for refusal in guard.refusals_to_engage(switch.pk)]
        override_entry = (
            break_glass.override_record(_describe_override(row), rules, "engage", actor)
            if rules
            else None
        )
        done = open_episode(
            *(head, switch, order.reason, expiry, evidence, actor, now, override_entry),
            engaged_at=since,
            more=more,
        )
    _close(row, State.RECONCILED, switch.version, now, episode=done.episode)
    if done.review is None:
        _open_review(row, done, actor, now)


def _open_review(row: EmergencyOrder, done: Engagement, actor: Actor, now: datetime) -> None:
    switch_id, episode = done.switch.pk, done.episode
    reviews.open_review(
        rule="",
        summary=f"Emergency order: {switch_id} engaged on the {row.place}",
        reason=_describe_override(row),
        target=switch_id,
        diff={
            "episode": episode.pk,
            "did": "engage",
            "rules": [],
            "order": str(row.pk),
            "ordered_at": timestamp(row.at),
        },
        actor=actor,
        now=now,
    )


def _describe_override(row: EmergencyOrder) -> str:
    return f"{row.reason} (Emergency order on the {row.place}, which can't evaluate safety rules.)"


def _attach(
    head: Publication,
    row: EmergencyOrder,
    switch: Switch,
    episode: Episode,
    expiry: Expiry,
    actor: Actor,
    now: datetime,
) -> None:
    """Close an order whose switch is engaged; the episode lasts as long as the order at least.

    At the end of the episode the switch stays engaged, as was ordered: nothing but a person
    releases it.
    """
    before = changes.audit_state(switch, episode)
    fields = _extension(episode, expiry, now)
    version = publication.advance(head, now) if not fields else 0
    if fields:
        changes.update_episode(episode, fields)
        publication.publish(head, switch, now)
        version = switch.version
        if "overdue_at" in fields:
            escalation.close(subject=changes.episode_subject(episode), now=now)
    _close(row, State.ATTACHED, version, now, episode=episode)
    if fields:
        changes.record_change(
            *("switch.extended", switch, episode, actor, now),
            before=before,
            reason=row.reason,
            more={"emergency": notifications.order_facts(row)},
        )
    wants_permanent = expiry.permanent_requested and not episode.permanent
    if wants_permanent and not break_glass.violated_rules(episode):
        permanent_approval.request_permanent(switch, episode, row.reason, actor, now)
    more = {"episode": episode.pk}
    notifications.record(notifications.ATTACHED, row, actor, now, reason=row.reason, more=more)


def _extension(episode: Episode, expiry: Expiry, now: datetime) -> dict[str, Any]:
    """Return the fields to change so that the engaged episode lasts as long as an order."""
    if episode.expires_at is None:
        return {}
    fields: dict[str, Any] = {}
    if episode.on_expiry != OnExpiry.HOLD:
        fields["on_expiry"] = OnExpiry.HOLD.value
    if expiry.expires_at > max(episode.expires_at, now):
        fields["expires_at"] = expiry.expires_at
        fields |= reminders.skipped_reminders(expiry.expires_at, now)
        if episode.overdue_at is not None:
            fields |= {"overdue_at": None, **changes.NOT_ACKNOWLEDGED}
    return fields


def _reconcile_withdrawal(
    head: Publication, row: EmergencyOrder, actor: Actor, now: datetime
) -> bool:
    """Close a withdrawal, and its order if that is refused and still blocks.

    An order that is not closed yet goes first, and finds its withdrawal: were the withdrawal closed
    first, data planes could forget it and serve the order again. An order that has become an
    episode stays engaged, and people are asked to release it.
    """
    # Not locked: a data plane that adds its name to many orders locks these in another order.
    named = EmergencyOrder.objects.filter(pk__in=_withdrawn_ids(row), switch=row.switch)
    orders = [order for order in named if _may_withdraw(row, order)]
    if named and not orders:
        _refuse(head, row, "A relay can withdraw only orders that were given to it.", now)
        return True
    if any(order.state == State.RECEIVED for order in orders):
        return False
    episodes = [order.episode for order in orders if order.episode is not None]
    episode = max(episodes, key=lambda each: each.pk, default=None)
    version = publication.advance(head, now)
    for order in orders:
        if order.state == State.REFUSED and order.closed_at is None:
            _close(order, State.REFUSED, version, now)
    if episode is None or episode.ended_at is not None:
        _close(row, State.WITHDRAWN, version, now)
        notifications.record(notifications.WITHDRAWN, row, actor, now, reason=row.reason)
        return True
    _close(row, State.LATE_WITHDRAWAL, version, now, episode=episode)
    notifications.announce(
        notifications.WITHDRAWN_LATE,
        row,
        now,
        said="Release it if its cause is over. By then it was engaged in the console.",
    )
    more = {"episode": episode.pk}
    notifications.record(
        notifications.WITHDRAWN_LATE, row, actor, now, reason=row.reason, more=more
    )
    return True


def _refuse(head: Publication, row: EmergencyOrder, why: str, now: datetime) -> None:
    """Refuse an order, which blocks its switch for another 10 minutes so that a person can act.

    A refused withdrawal has no effect, and a withdrawn order has none any more.
    """
    row.state, row.refusal = State.REFUSED, why
    is_engage = row.action == EmergencyOrder.Action.ENGAGE
    if is_engage and not _is_withdrawn(row, now):
        row.blocks_until = now + REFUSED_BLOCKS_FOR
        row.save(update_fields=["state", "refusal", "blocks_until"])
        to_do, until = TO_DO.format(row.switch), timestamp(row.blocks_until)
    else:
        _close(row, State.REFUSED, publication.advance(head, now), now)
        to_do = "" if is_engage else "Nothing: the withdrawal has no effect."
        until = None
    facts = {"said": why, "to_do": to_do, "blocks_until": until}
    notifications.announce(notifications.REFUSED, row, now, **facts)
    more = {"blocks_until": until}
    notifications.record(notifications.REFUSED, row, SYSTEM, now, reason=why, more=more)


def _end_refusal(head: Publication, row: EmergencyOrder, now: datetime) -> None:
    _close(row, State.REFUSED, publication.advance(head, now), now)
    is_stopped = Episode.objects.filter(switch_id=row.switch, ended_at__isnull=True).exists()
    said = (
        "The switch was engaged by other means."
        if is_stopped
        else "The switch is released: services are told to allow its traffic."
    )
    notifications.announce(notifications.ENDED, row, now, said=said)
    notifications.record(notifications.ENDED, row, SYSTEM, now, reason=said)


def _close(
    row: EmergencyOrder,
    state: EmergencyOrder.State,
    version: int,
    now: datetime,
    *,
    episode: Episode | None = None,
) -> None:
    """Store what became of an order, and the published version in which data planes drop it."""
    row.state, row.closed_at, row.closed_version = state, now, version
    row.episode = episode or row.episode
    row.save(update_fields=["state", "refusal", "episode", "closed_at", "closed_version"])
