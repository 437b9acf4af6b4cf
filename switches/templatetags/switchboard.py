"""Template tags of switches: states, names, links and numbers."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from controlplane.core.instances.checked_keys import CheckedKey
from controlplane.core.templatetags.screen import ago, at_minute, icon
from switches.blast import SwitchBlastRadius
from switches.check_descriptions import AFFECTS_ALL, format_rate, name_callers
from switches.engage_suggestions import Suggestion, find_checked_feature
from switches.episodes.descriptions import END_WORDS, EXPIRY_EFFECTS
from switches.models import Switch
from switches.scopes import GLOBAL_ID, SCOPES, is_switch_id, join_words

register = template.Library()
register.filter("per_second", format_rate)

WORDS = {"engaged": "Engaged", "overdue": "Overdue", "ramping": "Ramping", "released": "Released"}


@register.simple_tag
def state(condition: str, detail: str = "") -> SafeString:
    """Render a state as icon, word and color; `detail` follows the word (`Ramping 25 %`)."""
    return format_html(
        '<span class="state state--{}">{}<span>{}</span></span>',
        condition,
        icon(condition),
        f"{WORDS[condition]} {detail}".strip(),
    )


@register.simple_tag
def checked_feature(now: datetime) -> Suggestion | None:
    return find_checked_feature(now)


@register.simple_tag
def switch_name(switch_id: str, link: bool = True, **attributes: Any) -> SafeString:
    """Render a switch's name, linked to its page, with the scope in a quieter color."""
    scope, _, key = switch_id.partition(":")
    name = format_html('<span class="switch-name__scope">{}:</span>{}', scope, key)
    url = switch_url(switch_id)
    if not link or not url:
        return format_html('<span class="switch-name">{}</span>', name)
    if "id" in attributes:
        return format_html(
            '<a class="switch-name" id="{}" href="{}">{}</a>', attributes["id"], url, name
        )
    return format_html('<a class="switch-name" href="{}">{}</a>', url, name)


@register.simple_tag
def key_checks(key: CheckedKey, now: datetime) -> SafeString:
    """Render the checks of a key: `12/s by core, 3 s ago`, gray if stale, marked if there are none.

    The age counts on in the browser.
    """
    last_seen = key.freshness.at
    if last_seen is None or not key.is_checked:
        if key.switch == GLOBAL_ID:
            return format_html('<span class="small quiet">{}</span>', AFFECTS_ALL.capitalize())
        since = format_html(" since {}", at_minute(last_seen)) if last_seen else " in the last hour"
        return format_html(
            '<span class="small quiet">{} No checks reported{}</span>', icon("unknown"), since
        )
    callers, when = name_callers(key.services), ago(last_seen, now)
    if key.freshness.is_current and not key.has_stopped:
        rate = format_rate(key.calls_per_second)
        return format_html(
            '<span class="small"><b class="digits">{}</b> by <bdi>{}</bdi>, '
            '<span class="nowrap">{}</span></span>',
            *(rate, callers, when),
        )
    return format_html(
        '<span class="small quiet">Last checked by <bdi>{}</bdi> '
        '<span class="nowrap">{}</span>{}</span>',
        *(callers, when, ", stopped since" if key.has_stopped else ""),
    )


@register.filter
def callers(blast: SwitchBlastRadius) -> str:
    """Return the number of callers as text: `4 instances of 2 services and 1 token`."""
    return _format_callers(blast, f" of {_format_count(len(blast.services), 'service')}")


@register.filter
def callers_in_short(blast: SwitchBlastRadius) -> str:
    """Return the number of callers as text: `4 instances and 1 token`."""
    return _format_callers(blast, "")


@register.filter
def stopped_callers(blast: SwitchBlastRadius) -> str:
    """Return how many of the calling instances have stopped, as a sentence."""
    if blast.processes == 1:
        return "The instance has stopped since."
    count = _format_count(blast.stopped, "instance")
    if blast.stopped == blast.processes:
        count = f"All {count}"
    return f"{count} {'has' if blast.stopped == 1 else 'have'} stopped since."


@register.filter
def join_callers(callers: Sequence[Mapping[str, Any]]) -> SafeString:
    """Return services that call another, with notes: `a (high), b (critical, no data)`."""
    return format_html_join(
        ", ",
        '<span class="user-text">{}</span>{}',
        ((Truncator(caller["service"]).chars(40), _caller_notes(caller)) for caller in callers),
    )


@register.filter
def beyond(found: Sequence[object], shown: int) -> int:
    """Return the number of items after the first `shown`."""
    return max(0, len(found) - shown)


@register.filter
def milliseconds(duration: int) -> str:
    """Return milliseconds as text: `41 ms`, `1.2 s`, `3 min 5 s`."""
    if duration < 1000:
        return f"{duration} ms"
    if duration < 59_950:
        return f"{duration / 1000:.1f} s"
    minutes, seconds = divmod(round(duration / 1000), 60)
    return f"{minutes} min {seconds} s"


@register.filter
def switch_url(target: str) -> str:
    """Return the path of a switch's page; empty if the target of an audit row is no switch id."""
    return reverse("switch_page", args=target.split(":")) if is_switch_id(target) else ""


@register.filter
def check_body(switch: Switch) -> str:
    """Return the JSON body of a check request for a switch, such as `{"segments":["finance"]}`."""
    field = SCOPES[switch.scope].question_field
    return json.dumps({field: [switch.key]} if field else {}, separators=(",", ":"))


@register.filter
def expiry_effect(on_expiry: str) -> str:
    """Return the effect of an expiry policy as a clause: `traffic returns in steps`."""
    return EXPIRY_EFFECTS[on_expiry]


@register.filter
def end_word(ended_how: str) -> str:
    """Return how an episode ended as text, such as `released by expiry`."""
    return END_WORDS[ended_how]


@register.simple_tag
def scope_names() -> str:
    """Return all scope names as text: `global, segment, feature and experiment`."""
    return join_words(SCOPES.names)


@register.simple_tag
def scope_keys() -> str:
    """Return the scopes as text for scripts, with the key if it is fixed: `global:all segment`."""
    return " ".join(
        scope.name + (f":{scope.only_key}" * bool(scope.only_key)) for scope in SCOPES.values()
    )


def _format_callers(blast: SwitchBlastRadius, of_services: str) -> str:
    processes = _format_count(blast.processes, "instance") + of_services if blast.processes else ""
    tokens = _format_count(blast.tokens, "token") if blast.tokens else ""
    return " and ".join(filter(None, (processes, tokens)))


def _format_count(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _caller_notes(caller: Mapping[str, Any]) -> SafeString | str:
    """Return the criticality of grave calls, and whether no report of the dependency is known."""
    grave = [caller["criticality"]] if caller["criticality"] in {"critical", "high"} else []
    notes = [*grave, *([] if caller["was_reported"] else ["no data"])]
    return format_html(' <span class="quiet">({})</span>', ", ".join(notes)) if notes else ""
