"""Command palette entries of switches: pages, actions, and each switch."""

from collections.abc import Sequence
from operator import attrgetter
from urllib.parse import urlencode

from django.db.models import F
from django.db.models.functions import Length
from django.urls import reverse

from controlplane.core.actions import Action
from controlplane.core.instances.checked_keys import (
    CheckedKey,
    find_keys,
    load_checked_keys,
)
from controlplane.core.jobs.models import Job
from controlplane.core.palette import relevance
from controlplane.core.palette.registry import (
    ACTION,
    MAX_ENTRIES,
    PALETTE_SOURCES,
    PaletteCommand,
    PaletteEntry,
    PaletteQuery,
    register_commands,
)
from controlplane.core.search_words import split_words

from .board import OVERDUE, SwitchboardRow, board_row, make_unregistered, take_unregistered
from .check_descriptions import NOT_CHECKED, describe_checks
from .models import Ramp, Switch
from .scopes import GLOBAL_ID, KEY, is_switch_id, keyed_scopes

SEARCHED_FIELDS = "id", "description"
ENGAGE, RELEASE, ACKNOWLEDGE = "engage", "release", "acknowledge"
VERBS = {
    **dict.fromkeys(("engage", "stop", "kill"), ENGAGE),
    **dict.fromkeys(("release", "resume"), RELEASE),
    "extend": "extend",
    **dict.fromkeys(("acknowledge", "ack"), ACKNOWLEDGE),
}
VERB_ICONS = {RELEASE: "released", "extend": "extend", ACKNOWLEDGE: "eye"}
ENDING = "abort"
UNDO = "undo"
EVERYTHING = {"everything", "all", "global", "all traffic"}  # names of global:all
OPENS_FORM = "opens the form"
MAX_CHECKED = 2 * MAX_ENTRIES
MAX_WEIGHED = 50
VERBATIM = 200.0  # weight of a switch named by its whole id

register_commands(
    5,
    PaletteCommand(
        "Engage a switch…",
        "engaged",
        "engage",
        keys="e",
        kind=ACTION,
        in_dialog=True,
        scope="operate",
        words="stop kill halt block",
    ),
    PaletteCommand(
        "Undo what you engaged",
        "undo",
        keys="z",
        kind=ACTION,
        runs="undo",
        scope="operate",
        words="take back mistake revert",
        detail="within 30 seconds, without confirmation",
    ),
    PaletteCommand(
        "Abort the ramp of this page",
        "engaged",
        keys="a",
        kind=ACTION,
        runs="abort",
        scope="operate",
        words="ramp stop engage again",
        detail="without confirmation",
    ),
)
register_commands(
    10,
    PaletteCommand(
        "Switchboard",
        "board",
        "switchboard",
        keys="g s",
        words="home switches",
        has_team_filter=True,
    ),
)
register_commands(
    30, PaletteCommand("Ramps", "ramping", "ramps_page", keys="g r", words="release canary steps")
)
register_commands(
    50,
    PaletteCommand("Drills", "drill", "drills_page", words="rehearse proven"),
    PaletteCommand("Weekly report", "report", "reports_page", keys="g w", words="sign off"),
    PaletteCommand(
        "Environments",
        "global",
        "environments_page",
        words="siblings staging production side by side compare",
    ),
)
register_commands(
    80,
    PaletteCommand("Safety rules", "rules", "rules_page", words="at most exclusive protected"),
    PaletteCommand("Trips", "trip", "trips_page", words="automatic monitors alertmanager"),
)


@PALETTE_SOURCES.add(10)
def find_switches(query: PaletteQuery) -> Sequence[PaletteEntry]:
    """Return palette entries for a typed text such as `finance` or `engage feature:nl2sql`."""
    first, _, rest = query.text.partition(" ")
    verb = VERBS.get(first.casefold(), "") if query.user.may_operate else ""
    text = rest.strip() if verb else query.text
    target = GLOBAL_ID if text.casefold() in EVERYTHING else text
    known, unknown = _search_switches(text, query), _search_unregistered(text, query)
    checks = load_checked_keys({target, *(switch.pk for switch in (*known, *unknown))}, query.now)
    found = [*known, *(one for one in unknown if checks[one.pk].is_checked)]
    found = sorted(found, key=lambda one: -_weigh_switch(one, text, query))[: 2 * MAX_ENTRIES]
    entries: list[PaletteEntry] = []
    if is_switch_id(target):
        registered = Switch.objects.with_open_episode().filter(pk=target).first()
        switch = registered or make_unregistered(target)
        entries += _build_entries(query, verb, switch, target, checks[target], is_best=True)
    elif verb == ENGAGE and KEY.fullmatch(target) and not found:
        entries += [
            _engage_entry(f"{scope.name}:{target}", 90.0, NOT_CHECKED) for scope in keyed_scopes()
        ]
    for switch in found:
        is_best = not entries
        entries += _build_entries(query, verb, switch, text, checks[switch.pk], is_best=is_best)
    unique: dict[tuple[str, str], PaletteEntry] = {}
    for entry in entries:
        unique.setdefault((entry.kind, entry.path), entry)
    return list(unique.values())[: 2 * MAX_ENTRIES]


def _search_switches(text: str, query: PaletteQuery) -> Sequence[Switch]:
    if not text:
        return []
    rows = Switch.objects.with_open_episode().containing(split_words(text), SEARCHED_FIELDS)
    closest = rows.order_by(F("open_episode__id").asc(nulls_last=True), Length("id"), "id")
    ids = query.take(closest.values_list("pk", flat=True), MAX_WEIGHED, str)
    weighed = rows.filter(pk__in=ids)
    found = sorted(weighed, key=lambda switch: -_weigh_switch(switch, text, query))
    return found[:MAX_ENTRIES]


def _search_unregistered(text: str, query: PaletteQuery) -> Sequence[Switch]:
    """Return switches that services check, but that were never registered or engaged."""
    if not text:
        return []
    keys = [key for key in find_keys(text, query.now) if is_switch_id(key)]
    keys = query.take(keys, len(keys), str)
    return [make_unregistered(pk) for pk in take_unregistered(keys, MAX_CHECKED)]


def _weigh_switch(switch: Switch, text: str, query: PaletteQuery) -> float:
    words = split_words(text)
    stopped = 15.0 if switch.episode else 0.0  # people mostly look for stopped switches
    names = (switch.pk, switch.key)
    weight = max(relevance.score_text(words, name, switch.description) for name in names)
    return query.weigh(stopped + weight, switch.pk)


def _build_entries(
    query: PaletteQuery,
    verb: str,
    switch: Switch,
    wanted: str,
    checks: CheckedKey,
    *,
    is_best: bool,
) -> Sequence[PaletteEntry]:
    """Return the entry of a switch's page, and its actions; only the best match offers Engage."""
    shown = board_row(switch, query.user, query.now)
    weight = (
        VERBATIM
        if wanted.casefold() == switch.pk.casefold()
        else _weigh_switch(switch, wanted, query)
    )
    traffic = describe_checks(checks, query.now)
    page = PaletteEntry(
        "Switch",
        switch.pk,
        shown.condition,
        reverse("switch_page", args=[switch.scope, switch.key]),
        " · ".join(filter(None, (shown.condition, traffic, switch.description))),
        weight=weight,
        is_lasting=True,
        resource=switch.pk,
    )
    may_engage = query.user.may_operate and (not switch.episode or shown.condition == "ramping")
    if verb == ENGAGE and may_engage:
        return [_engage_entry(switch.pk, weight + 5, traffic), page]
    asks = _must_ask(query, switch)
    if verb in _list_verbs(shown):
        return [_verb_entry(verb, switch, weight + 5, asks=asks), page]
    if not verb and query.user.may_operate and not switch.episode and is_best:
        return [page, _engage_entry(switch.pk, weight - 1, traffic)]
    if not verb and query.user.may_operate and shown.condition != "ramping":
        verbs = _list_verbs(shown)
        return [page, *(_verb_entry(each, switch, weight - 0.1, asks=asks) for each in verbs)]
    return [page]


def _list_verbs(row: SwitchboardRow) -> Sequence[str]:
    """Return what may be done with the switch's open episode."""
    episode = row.episode
    if episode is None:
        return ()
    if row.condition == OVERDUE and episode.acknowledged_at is None:
        return (RELEASE, "extend", ACKNOWLEDGE)
    return (RELEASE,) if episode.permanent else (RELEASE, "extend")


def _must_ask(query: PaletteQuery, switch: Switch) -> bool:
    """Return True if only the owner may release the switch, whom the user may ask."""
    return query.teams.decide(query.user.as_actor(), Action.RELEASE, switch.pk).can_ask


def _verb_entry(verb: str, switch: Switch, weight: float, *, asks: bool) -> PaletteEntry:
    path = reverse(verb, args=[switch.scope, switch.key])
    title = f"{_name_verb(verb, asks=asks)} {switch.pk}…"
    return _action_entry(title, VERB_ICONS[verb], path, weight, switch.pk)


def _name_verb(verb: str, *, asks: bool) -> str:
    return "Ask to release" if asks and verb == RELEASE else verb.capitalize()


def _engage_entry(switch_id: str, weight: float, detail: str) -> PaletteEntry:
    scope, _, key = switch_id.partition(":")
    path = f"{reverse('engage')}?{urlencode({'scope': scope, 'key': key})}"
    return _action_entry(f"Engage {switch_id}…", "engaged", path, weight, switch_id, detail)


def _action_entry(
    title: str, icon: str, path: str, weight: float, switch_id: str, detail: str = OPENS_FORM
) -> PaletteEntry:
    return PaletteEntry(
        ACTION, title, icon, path, detail, in_dialog=True, weight=weight, resource=switch_id
    )


@PALETTE_SOURCES.add(12)
def find_stopped_switches(query: PaletteQuery) -> Sequence[PaletteEntry]:
    verb = query.text.casefold()
    verb = VERBS.get(verb, verb)
    if verb not in {*VERB_ICONS, UNDO, ENDING} or not query.user.may_operate:
        return []
    stopped = Switch.objects.stopped().with_open_episode()
    newest = stopped.order_by(F("open_episode__engaged_at").desc())
    entries: list[PaletteEntry] = []
    for switch in query.take(newest, 2 * MAX_ENTRIES, attrgetter("pk")):
        shown = board_row(switch, query.user, query.now)
        fits = {
            UNDO: shown.undo_until is not None,
            ENDING: shown.condition == "ramping",
            ACKNOWLEDGE: ACKNOWLEDGE in _list_verbs(shown),
        }
        if fits.get(verb, True):
            path = reverse("switch_page", args=[switch.scope, switch.key])
            asks = verb == RELEASE and _must_ask(query, switch)
            title = f"{_name_verb(verb, asks=asks)} {switch.pk}"
            keys = {UNDO: ("z",), ENDING: ("a",)}
            entries.append(
                PaletteEntry(
                    "Switch",
                    title,
                    shown.condition,
                    path,
                    "opens its page",
                    keys=keys.get(verb, ()),
                    weight=VERBATIM - len(entries) / 100,
                    resource=switch.pk,
                )
            )
    return entries[:MAX_ENTRIES]


@PALETTE_SOURCES.add(30)
def find_ramps(query: PaletteQuery) -> Sequence[PaletteEntry]:
    """Return the live ramps that match, each with its actions: pause or resume, and engage."""
    found = Ramp.objects.filter(live=True, switch__id__icontains=query.words[-1])
    entries: list[PaletteEntry] = []
    newest = found.select_related("job").order_by("-pk")
    for ramp in query.take(newest, MAX_ENTRIES, attrgetter("switch_id")):
        weight = relevance.score_text(query.words, f"Ramp of {ramp.switch_id}", ramp.switch_id)
        weight = query.weigh(weight, ramp.switch_id)
        if weight:
            waits = ramp.job.state == Job.State.PENDING
            detail = "waiting for approval" if waits else str(ramp.job.state)
            path = reverse("ramp_page", args=[ramp.pk])
            title = f"Ramp of {ramp.switch_id}"
            shown = ("Ramp", title, "ramping", path, detail)
            entries.append(PaletteEntry(*shown, weight=weight, resource=ramp.switch_id))
            if query.user.may_operate and not waits:
                entries += _build_ramp_actions(ramp, detail, weight - 0.1)
    return entries


def _build_ramp_actions(ramp: Ramp, state: str, weight: float) -> list[PaletteEntry]:
    verb = {
        Job.State.RUNNING: "pause",
        Job.State.HOLDING: "pause",
        Job.State.PAUSED: "resume",
    }.get(Job.State(ramp.job.state))
    actions = [_engage_entry(ramp.switch_id, weight, f"ends its ramp, {state}")]
    if verb:
        path = reverse(f"ramp_{verb}", args=[ramp.pk])
        title = f"{verb.capitalize()} the ramp of {ramp.switch_id}…"
        actions.insert(0, _action_entry(title, verb, path, weight, ramp.switch_id))
    return actions
