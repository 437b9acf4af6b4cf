"""Command palette entries of breakers: pages, overrides and dependencies."""

import re
from collections.abc import Sequence
from operator import attrgetter

from django.db.models import Q
from django.db.models.functions import Length
from django.urls import reverse

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

from .message_facts import page_path
from .models import Dependency

FORCE = "force"
MAX_WEIGHED = 50
MAX_FORCED = 3  # offered without the verb
ARROW = re.compile(r"\s*(?:->|→)\s*")

register_commands(
    6,
    PaletteCommand(
        "Force a breaker…",
        "override",
        "breakers_page",
        kind=ACTION,
        scope="operate",
        words="override open close disable",
        detail="choose a dependency, then f; or type: force core->oracle",
        keys="f",
    ),
)
register_commands(
    7,
    PaletteCommand(
        "Register a dependency…",
        "breaker-closed",
        "dependency_new",
        kind=ACTION,
        scope="admin",
        words="new policy breaker caller callee",
        in_dialog=True,
    ),
)
register_commands(
    40,
    PaletteCommand(
        "Breakers",
        "breaker-open",
        "breakers_page",
        keys="g b",
        words="dependencies circuit",
        has_team_filter=True,
    ),
    PaletteCommand("Dependency map", "map", "map_page", keys="g m", words="graph who calls"),
    PaletteCommand("Fallbacks", "fallback", "fallbacks_page", words="coverage gaps matrix"),
    PaletteCommand("Infrastructure", "store", "infrastructure_page", words="redis postgres probes"),
)


@PALETTE_SOURCES.add(20)
def find_dependencies(query: PaletteQuery) -> Sequence[PaletteEntry]:
    """Return entries of matching dependencies, and actions to force the breakers of the best ones.

    The verb in `force core->oracle` puts the actions first.
    """
    first, _, rest = query.text.partition(" ")
    forces = first.casefold() == FORCE and query.user.may_operate
    words = split_words(ARROW.sub(" ", rest if forces else query.text))
    if not words:
        return []
    rows = Dependency.objects.registered()
    for word in words:
        rows = rows.filter(
            Q(caller__icontains=word) | Q(callee__icontains=word) | Q(owner__icontains=word)
        )
    shortest = rows.order_by(Length("caller") + Length("callee"), "caller", "callee")
    found = query.take(shortest, MAX_WEIGHED, attrgetter("resource"))
    weighed = [(query.weigh(_weigh(one, words), one.resource), one) for one in found]
    best = sorted(weighed, key=lambda pair: -pair[0])[:MAX_ENTRIES]
    entries = [_build_entry(one, weight) for weight, one in best]
    if query.user.may_operate:
        above, most = (100, MAX_ENTRIES) if forces else (-0.1, MAX_FORCED)
        entries += [_build_force_action(one, weight + above) for weight, one in best[:most]]
    return entries


def _weigh(dependency: Dependency, words: Sequence[str]) -> float:
    name = f"{dependency.caller} {dependency.callee}"
    weight = relevance.score_text(words, name, dependency.owner)
    return max(weight, relevance.score_text(words, dependency.callee))


def _build_entry(one: Dependency, weight: float) -> PaletteEntry:
    path = page_path(one)
    detail = f"{one.criticality} · {one.owner}" if one.owner else one.criticality
    page = ("Dependency", one.label, "breaker-closed", path, detail)
    return PaletteEntry(*page, weight=weight, is_lasting=True, resource=one.resource)


def _build_force_action(one: Dependency, weight: float) -> PaletteEntry:
    path = reverse("override", args=[one.caller, one.callee])
    action = (ACTION, f"Force {one.label}…", "override", path, "opens the form")
    return PaletteEntry(*action, in_dialog=True, weight=weight, resource=one.resource)
