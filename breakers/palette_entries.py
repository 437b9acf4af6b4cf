"""Command palette entries of breakers: pages, overrides and dependencies."""

import re
from collections.abc import Sequence

from django.db.models import Q
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

from .models import Dependency

FORCE = "force"
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
        "Breakers", "breaker-open", "breakers_page", keys="g b", words="dependencies circuit"
    ),
    PaletteCommand("Dependency map", "map", "map_page", keys="g m", words="graph who calls"),
    PaletteCommand("Fallbacks", "fallback", "fallbacks_page", words="coverage gaps matrix"),
    PaletteCommand("Infrastructure", "store", "infrastructure_page", words="redis postgres probes"),
)


@PALETTE_SOURCES.add(20)
def find_dependencies(query: PaletteQuery) -> Sequence[PaletteEntry]:
    """Return entries of matching dependencies; `force core->oracle` also offers to override."""
    first, _, rest = query.text.partition(" ")
    forces = first.casefold() == FORCE and query.user.may_operate
    words = ARROW.sub(" ", rest if forces else query.text).casefold().split()
    if not words:
        return []
    found = Dependency.objects.registered()
    for word in words[:6]:
        found = found.filter(
            Q(caller__icontains=word) | Q(callee__icontains=word) | Q(owner__icontains=word)
        )
    entries: list[PaletteEntry] = []
    for one in found.order_by("caller", "callee")[:50]:
        weight = relevance.score_text(words, f"{one.caller} {one.callee}", one.owner)
        weight = max(weight, relevance.score_text(words, one.callee))
        if forces:
            path = reverse("override", args=[one.caller, one.callee])
            force = (ACTION, f"Force {one.name}…", "override", path, "opens the form")
            entries.append(PaletteEntry(*force, in_dialog=True, weight=weight + 100))
        path = reverse("dependency_page", args=[one.caller, one.callee])
        detail = f"{one.criticality}" + (f" · {one.owner}" if one.owner else "")
        page = ("Dependency", one.name, "breaker-closed", path, detail)
        entries.append(PaletteEntry(*page, weight=weight, is_lasting=True))
    return sorted(entries, key=lambda entry: -entry.weight)[:MAX_ENTRIES]
