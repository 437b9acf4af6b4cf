"""Items of the attention page about emergency orders: refused, withdrawn too late, or waiting."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Exists, OuterRef, Q, QuerySet

from controlplane.core import durations
from controlplane.core.actions import Action
from controlplane.core.actors import label_of
from controlplane.core.page_registry import AttentionAction, AttentionItem, attention_rows
from controlplane.core.scopes import is_switch_id
from switches.models import EmergencyOrder, Episode

from .reconciliation import REFUSED_BLOCKS_FOR

MAX_ITEMS = 50
LISTED_FOR = timedelta(days=1)
"""Time for which an engagement whose order was withdrawn too late is listed."""
WAITING_AFTER = timedelta(seconds=10)

State = EmergencyOrder.State


def _find_refused(_now: Any) -> QuerySet[EmergencyOrder]:
    engaged = Episode.objects.filter(
        switch_id=OuterRef("switch"), ended_at__isnull=True, allow_percent=0
    )
    blocking = EmergencyOrder.objects.filter(state=State.REFUSED, closed_at__isnull=True)
    return blocking.filter(~Exists(engaged)).order_by("blocks_until", "pk")[:MAX_ITEMS]


def _find_withdrawn_late(now: Any) -> QuerySet[EmergencyOrder]:
    late = EmergencyOrder.objects.filter(
        state=State.LATE_WITHDRAWAL,
        closed_at__gt=now - LISTED_FOR,
        episode__ended_at__isnull=True,
        episode__allow_percent=0,
    )
    return late.order_by("closed_at", "pk")[:MAX_ITEMS]


def unsettled_orders(now: Any) -> QuerySet[EmergencyOrder]:
    """Return open orders that are refused, or that should have been reconciled by now."""
    is_unsettled = Q(state=State.REFUSED) | Q(received_at__lt=now - WAITING_AFTER)
    return EmergencyOrder.objects.filter(is_unsettled, closed_at__isnull=True)


def _find_waiting(now: Any) -> QuerySet[EmergencyOrder]:
    waiting = unsettled_orders(now).filter(state=State.RECEIVED)
    return waiting.order_by("received_at", "pk")[:MAX_ITEMS]


@attention_rows(4, _find_refused)
def list_refused(_now: datetime, found: Sequence[Any]) -> list[AttentionItem]:
    return [
        AttentionItem(
            kind="refused_order",
            severity="critical",
            title=f"The emergency order for {order.switch} was refused",
            detail=f"{order.refusal} Data planes block its traffic for a few more minutes: engage"
            f" it now if it must stay blocked. {_describe_order(order)}",
            path=switch_path(order),
            since=order.blocks_until - REFUSED_BLOCKS_FOR,
            due_at=order.blocks_until,
            actions=(_engage_action(order),) if is_switch_id(order.switch) else (),
            subjects=(f"emergency:{order.pk}",),
            resource=order.switch,
        )
        for order in found
    ]


@attention_rows(6, _find_withdrawn_late)
def list_withdrawn_late(_now: datetime, found: Sequence[EmergencyOrder]) -> list[AttentionItem]:
    return [
        AttentionItem(
            kind="late_withdrawal",
            severity="warning",
            title=f"{order.switch} stays engaged: its emergency order was withdrawn too late",
            detail="By then it was engaged in the console. Release it if its cause is over. "
            + _describe_order(order),
            path=switch_path(order),
            since=order.at,
            actions=(_release_action(order),),
            subjects=(f"emergency:{order.pk}",),
            resource=order.switch,
        )
        for order in found
    ]


@attention_rows(5, _find_waiting)
def list_waiting(now: datetime, found: Sequence[EmergencyOrder]) -> list[AttentionItem]:
    return [
        AttentionItem(
            kind="waiting_order",
            severity="warning",
            title=f"An emergency order for {order.switch} is not reconciled",
            detail="It has waited for "
            f"{durations.format_readable(now - order.received_at)}; data planes obey it meanwhile."
            " Check that workers run, and look for emergency.reconcile in their log. "
            + _describe_order(order),
            path=switch_path(order),
            since=order.received_at,
            subjects=(f"emergency:{order.pk}",),
            resource=order.switch,
        )
        for order in found
    ]


def _describe_order(order: EmergencyOrder) -> str:
    done = "Withdrawn" if order.action == EmergencyOrder.Action.WITHDRAW else "Ordered"
    who = label_of(order.by_type, order.by_name)
    return f"{done} by {who} on the {order.place}: {order.reason}"


def switch_path(order: EmergencyOrder) -> str:
    scope, _, key = order.switch.partition(":")
    return f"/switches/{scope}/{key}/" if is_switch_id(order.switch) else "/attention/"


def _engage_action(order: EmergencyOrder) -> AttentionAction:
    query = urlencode({"key": order.switch, "reason": order.reason})
    path = f"/switches/engage/?{query}"
    return AttentionAction("Engage…", path, "switches:write", "engaged", authority=Action.ENGAGE)


def _release_action(order: EmergencyOrder) -> AttentionAction:
    path = f"{switch_path(order)}release/"
    return AttentionAction(
        "Release…",
        path,
        "switches:write",
        "released",
        needs_current=True,
        authority=Action.RELEASE,
    )
