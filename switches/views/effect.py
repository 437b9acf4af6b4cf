"""Live parts of a switch's page: the effect of the last change, the callers and the calls."""

from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from controlplane.core.clock import db_now
from controlplane.core.instances.checked_keys import CHECKED_WITHIN
from controlplane.core.instances.queries import count_checking_instances
from controlplane.core.page_responses import PersonRequest, render_live, signed_in
from switches import page_updates
from switches.blast import blast_radius
from switches.call_plot import RANGES, load_call_plot
from switches.effect import (
    SwitchEffect,
    describe_checking,
    find_silent_instances,
    measure_effect,
)
from switches.engage_suggestions import find_similar_keys
from switches.models import Switch, SwitchState
from switches.scopes import GLOBAL_ID

from .actions import read_switch

PAGE, DIALOG = "page", "dialog"
STRAGGLERS_SHOWN = {PAGE: 20, DIALOG: 4}
SILENT_SHOWN = 4
MAX_CELLS = 40
QUICKLY, LESS_QUICKLY, SLOWLY = 1, 3, 5  # Seconds between two polls.
MANY_INSTANCES = 1000  # A poll reads a row per instance.
# After this time a straggler is unlikely to apply the change soon.
WATCHED_SECONDS = 600


@signed_in
@require_GET
def effect_panel(request: PersonRequest, scope: str, key: str) -> HttpResponse:
    switch, now = read_switch(scope, key), db_now()
    place = DIALOG if request.GET.get("in") == DIALOG else PAGE
    context = build_progress(switch, now, place)
    if context["effect"] is None:
        return page_updates.respond_nothing_new(now)
    return render_live(request, "switches/_effect.html", context)


@signed_in
@require_GET
def callers_panel(request: PersonRequest, scope: str, key: str) -> HttpResponse:
    switch_id, now = read_switch(scope, key).pk, db_now()
    context = {"scope": scope, "key": key, "blast": blast_radius(switch_id, now), "now": now}
    return render_live(request, "switches/_callers.html", context)


@signed_in
@require_GET
def calls_panel(request: PersonRequest, scope: str, key: str) -> HttpResponse:
    switch, now = read_switch(scope, key), db_now()
    return render_live(request, "switches/_calls.html", build_calls(request, switch, now))


def build_calls(request: PersonRequest, switch: Switch, now: datetime) -> dict[str, Any]:
    """Return template context: the plot of a switch's calls over the range `?calls=`."""
    plot = load_call_plot(switch.pk, request.GET.get("calls", ""), now)
    return {"switch": switch, "now": now, "calls": plot, "call_ranges": RANGES}


def build_progress(switch: Switch, now: datetime, place: str = PAGE) -> dict[str, Any]:
    """Return template context: the instances that have applied a switch's last change.

    `effect` is None if the switch has never been published.
    """
    measured = measure_effect(switch, now)
    if measured is None:
        return {"effect": None}
    silent = find_silent_instances(switch, now)[:SILENT_SHOWN] if measured.silent_total else ()
    shown = measured.stragglers[: STRAGGLERS_SHOWN[place]]
    is_engaged = switch.state == SwitchState.ENGAGED
    similar_keys = find_similar_keys(switch.pk, now, known=True) if is_engaged else None
    # Every check includes the global switch.
    is_counted = similar_keys is None and switch.pk != GLOBAL_ID
    checking = _build_checking(switch, measured.instances, now) if is_counted else {}
    commit_ms = None
    if measured.requested_at and measured.committed_at:
        commit_time = measured.committed_at - measured.requested_at
        commit_ms = max(0, round(commit_time.total_seconds() * 1000))
    return {
        "switch": switch,
        "now": now,
        "place": place,
        "effect": measured,
        "reach": _choose_reach(measured, checking),
        "state": switch.state.value,
        "cells": build_cells(measured.applied, measured.instances),
        "commit_ms": commit_ms,
        "stragglers": shown,
        "stragglers_more": measured.stragglers_total - len(shown),
        "silent": silent,
        "silent_total": measured.silent_total,
        "silent_more": measured.silent_total - len(silent),
        "pace_seconds": _pace_seconds(measured, now),
        "unchecked": similar_keys is not None,
        "similar_keys": similar_keys,
        **checking,
    }


def _build_checking(switch: Switch, instances: int, now: datetime) -> dict[str, Any]:
    """Return template context: which of the reporting `instances` check a switch.

    `only_others_check` is True if the switch is not released and none of them does.
    """
    checking = count_checking_instances(switch.pk, now - CHECKED_WITHIN, now)
    only_others_check = checking.total > 0 and not checking.reporting
    return {
        "checked_by": describe_checking(instances, checking),
        "only_others_check": only_others_check and switch.episode is not None,
    }


def _choose_reach(measured: SwitchEffect, checking: dict[str, Any]) -> str:
    """Return the reach to show: no full one if no instance that reports checks the switch."""
    if measured.reach == "everybody" and checking.get("only_others_check"):
        return "all-heard-from"
    return measured.reach


def build_cells(applied: int, instances: int) -> list[bool]:
    """Return a progress bar's cells, True if filled; the last only if all instances apply."""
    count = min(instances, MAX_CELLS)
    if not count:
        return []
    full = applied * count // instances
    full = max(full, 1) if applied else 0
    return [number < full for number in range(count)]


def _pace_seconds(measured: SwitchEffect, now: datetime) -> int:
    changed = measured.committed_at
    is_old = changed is None or (now - changed).total_seconds() > WATCHED_SECONDS
    if measured.whole or is_old:
        return SLOWLY
    return LESS_QUICKLY if measured.instances > MANY_INSTANCES else QUICKLY
