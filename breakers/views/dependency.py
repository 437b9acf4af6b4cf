"""The page of a dependency: status, history, policy and audit trail."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from breakers.counts import COUNTERS
from breakers.map import amplification
from breakers.models import Dependency, Override, Service, Transition
from breakers.names import dependency_name
from breakers.policies.differences import compare_audit_values, policy_sections
from breakers.services import override_undo, overrides, permissions
from breakers.states import dependency_status, history
from breakers.states.dependency_status import DependencyStatus
from breakers.states.minutes import load_minutes
from breakers.states.reporting_counts import was_reported
from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.audit import change_feed
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.configuration import samples
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, signed_in

from . import live

DAY_MINUTES = 24 * 60
STRIP_MINUTES = 5
TRANSITIONS_SHOWN = 12
ENTRIES_SHOWN = 10
INSTANCES_SHOWN = 50
HOPS_ABOVE = 6
MAX_ABOVE = 400
MAX_CELLS = 40
AUDITED_KINDS = ("override.", "dependency.")
TICKS = 4  # marks below the strip, six hours apart


@signed_in
@require_GET
def dependency_page(request: PersonRequest, caller: str, callee: str) -> HttpResponse:
    now = db_now()
    dependency = find_or_404(caller, callee)
    return live.render_page(request, "dependency", _page_context(request, dependency, now))


def find_or_404(caller: str, callee: str) -> Dependency:
    """Return the dependency or raise 404; a removed one is found, as its history stays visible."""
    return get_object_or_404(Dependency.objects.for_pair(caller, callee))


def _page_context(request: PersonRequest, dependency: Dependency, now: datetime) -> dict[str, Any]:
    (status,) = dependency_status.load_statuses([dependency], now)
    callee = Service.objects.filter(pk=dependency.callee).first()
    return {
        "now": now,
        "dependency": dependency,
        "one": status,
        "callee": callee,
        "runbook_url": dependency.runbook_url or (callee.runbook_url if callee else ""),
        "instances": dependency_status.list_instances(dependency, now, most=INSTANCES_SHOWN),
        "policy": policy_sections(dependency.document),
        "samples": samples.find_sample_names(
            "dependency", {dependency.name: dependency.changed_at}
        ),
        **override_context(status.override, now),
        **authority_context(actor_of(request), dependency, status.override),
        "undo_until": status.override
        and override_undo.find_undo_until(status.override, actor_of(request).label, now),
        **_history_context(dependency, status, now),
        **_transitions_context(request, dependency),
        **_audit_context(request, dependency),
        **_changes_context(dependency, status, now),
    }


def authority_context(
    actor: Actor, dependency: Dependency, override: Override | None
) -> dict[str, Any]:
    """Return the owner, and the decisions on what the actor may do with the dependency."""
    ending = permissions.get_end_action(override.mode if override else Override.Mode.FORCED_OPEN)
    decisions = {
        action: authority.decide(actor, action, dependency.resource)
        for action in (Action.ENGAGE, Action.OVERRIDE, Action.EDIT)
    }
    return {
        "team": decisions[Action.EDIT].owner,
        "may_stop": decisions[Action.ENGAGE],
        "may_override": decisions[Action.OVERRIDE],
        "may_end": decisions[ending],
        "may_edit": decisions[Action.EDIT],
    }


def override_context(override: Override | None, now: datetime) -> dict[str, Any]:
    """Return the override and its acknowledgement, for templates.

    `cells` stands for the instances, scaled to 40 at most: True for those that apply the override.
    """
    if override is None:
        return {"override": None}
    version = override.dependency.caller, override.version
    (got,) = overrides.list_acknowledgements([version], now)
    count = min(got.instances, MAX_CELLS)
    full = got.applied * count // got.instances if got.instances else 0
    return {
        "override": override,
        "acknowledged": got,
        "cells": [place < (max(full, 1) if got.applied else 0) for place in range(count)],
    }


def _history_context(
    dependency: Dependency, status: DependencyStatus, now: datetime
) -> dict[str, Any]:
    this_minute = now.replace(second=0, microsecond=0)
    first = this_minute - timedelta(minutes=DAY_MINUTES - 1)
    minutes = load_minutes([dependency.pk], first).get(dependency.pk, ())
    last_hour = [one for one in minutes if one.minute > this_minute - timedelta(minutes=60)]
    present = dependency_status.UNKNOWN if status.is_stale else status.state
    bands = history.build_bands(minutes, first, DAY_MINUTES, present=present)
    hour = history.sum_counts(last_hour)
    chain = _worst_chain(dependency)
    minutes_in = {
        state: sum(band.length for band in bands if band.state == state) for state in history.WORST
    }
    return {
        "bands": history.coarsen_bands(bands, STRIP_MINUTES),
        "minutes_in": minutes_in,
        "changes_to": _count_changes(dependency, first),
        "ticks": [
            this_minute - timedelta(hours=24 * place / TICKS) for place in range(TICKS, 0, -1)
        ],
        "hour": hour,
        "counted_until": history.find_last_counted(last_hour),
        "failures": history.assess_failures(minutes, now),
        "counters": [(name, getattr(hour, name), hour.share(name)) for name in COUNTERS],
        "spark": history.build_spark(last_hour, this_minute - timedelta(minutes=59), 60),
        "own_tries": count_attempts(dependency.document),
        "chain": chain,
        "without_data": _list_without_data(chain),
    }


def _count_changes(dependency: Dependency, since: datetime) -> dict[str, int]:
    """Return the number of changes to each state; short states are the worst of no minute."""
    rows = Transition.objects.filter(dependency=dependency, at__gte=since)
    return dict(rows.order_by().values_list("to_state").annotate(Count("pk")))


def _worst_chain(dependency: Dependency) -> amplification.RetryChain:
    """Return the chain of calls ending with this dependency that multiplies retries the most."""
    attempts = {(dependency.caller, dependency.callee): count_attempts(dependency.document)}
    rim = {dependency.caller}
    visited = {dependency.callee}
    for _ in range(HOPS_ABOVE):
        rows = Dependency.objects.registered().filter(callee__in=rim)
        found = rows.order_by("pk").values_list("caller", "callee", "document__retry__attempts")
        edges = {
            (caller, callee): _positive_or_one(number)
            for caller, callee, number in found[:MAX_ABOVE]
        }
        attempts |= edges
        visited |= rim
        rim = {caller for caller, _ in edges} - visited
        if not rim or len(attempts) >= MAX_ABOVE:
            break
    worst = amplification.find_worst_chain(attempts, dependency.caller, dependency.callee)
    return replace(worst, is_whole=worst.is_whole and not rim)


def _list_without_data(chain: amplification.RetryChain) -> list[str]:
    """Return the labels of the chain's dependencies of which no report is known, in its order."""
    pairs = [dependency_name(*pair) for pair in pairwise(chain.services)]
    silent = Dependency.objects.registered().select_named(pairs).exclude(was_reported())
    labels = {one.name: one.label for one in silent}
    return [labels[pair] for pair in pairs if pair in labels]


def count_attempts(document: Mapping[str, Any]) -> int:
    return _positive_or_one((document.get("retry") or {}).get("attempts"))


def _positive_or_one(number: Any) -> int:
    return number if isinstance(number, int) and number > 0 else 1


def _transitions_context(request: PersonRequest, dependency: Dependency) -> dict[str, Any]:
    rows = Transition.objects.filter(dependency=dependency).order_by("-at", "-pk")
    page = _parse_number(request.GET.get("transitions", "")) or 1
    start = (page - 1) * TRANSITIONS_SHOWN
    found = list(rows[start : start + TRANSITIONS_SHOWN + 1])
    return {
        "transitions": found[:TRANSITIONS_SHOWN],
        "transitions_page": page,
        "more_transitions": len(found) > TRANSITIONS_SHOWN,
    }


def _audit_context(request: PersonRequest, dependency: Dependency) -> dict[str, Any]:
    rows = AuditEntry.objects.filter(target=dependency.resource).order_by("-id")
    if before := _parse_number(request.GET.get("audit_before", "")):
        rows = rows.filter(pk__lt=before)
    found = list(rows[: ENTRIES_SHOWN + 1])
    shown = found[:ENTRIES_SHOWN]
    entries = [(entry, compare_audit_values(entry.before, entry.after)) for entry in shown]
    older = found[ENTRIES_SHOWN - 1].pk if len(found) > ENTRIES_SHOWN else None
    return {"entries": entries, "older_entries": older}


def _changes_context(
    dependency: Dependency, status: DependencyStatus, now: datetime
) -> dict[str, Any]:
    """Return the changes before the breaker opened, and the alerts after its last change.

    While the breaker isn't open, these are the changes in the last hour.
    """
    target = dependency.resource
    opened_at = status.last_transition_at if status.state == dependency_status.OPEN else None
    actions = [action for action in change_feed.CHANGE_KINDS if action.startswith(AUDITED_KINDS)]
    entries = AuditEntry.objects.filter(target=target, action__in=actions).order_by("-id")
    latest = entries.values_list("at", flat=True).first()
    callers = Dependency.objects.registered().filter(callee=dependency.caller)
    services = {dependency.caller, dependency.callee, *callers.values_list("caller", flat=True)}
    return {
        "opened_at": opened_at,
        "changes": change_feed.list_changes_before(
            opened_at or now, services=[dependency.callee], targets=[target]
        ),
        "alerts": latest
        and change_feed.list_alerts_after(latest, services=services, subjects=[dependency.name]),
    }


def _parse_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 8 and int(text) else None
