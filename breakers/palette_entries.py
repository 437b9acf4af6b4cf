"""What breakers put into the palette: their pages, forcing, dependencies."""

import re
from collections.abc import Sequence

from django.db.models import Q
from django.urls import reverse

from controlplane.core.palette import matching
from controlplane.core.palette.registry import ACTION, FEW, Asked, Command, Entry, commands, things

from .models import Dependency

FORCE = "force"
ARROW = re.compile(r"\s*(?:->|→)\s*")

commands(
    6,
    Command(
        "Force a breaker…",
        "override",
        "breakers_page",
        kind=ACTION,
        scope="operate",
        words="override open close disable",
        says="choose a dependency, then f; or type: force core->oracle",
        keys="f",
    ),
)
commands(
    7,
    Command(
        "Register a dependency…",
        "breaker-closed",
        "dependency_new",
        kind=ACTION,
        scope="admin",
        words="new policy breaker caller callee",
        in_dialog=True,
    ),
)
commands(
    40,
    Command("Breakers", "breaker-open", "breakers_page", keys="g b", words="dependencies circuit"),
    Command("Dependency map", "map", "map_page", keys="g m", words="graph who calls"),
    Command("Fallbacks", "fallback", "fallbacks_page", words="coverage gaps matrix"),
    Command("Infrastructure", "store", "infrastructure_page", words="redis postgres probes"),
)


@things(20)
def dependencies(asked: Asked) -> Sequence[Entry]:
    """`core->oracle`, `oracle`, `force core->oracle`."""
    first, _, rest = asked.text.partition(" ")
    forces = first.casefold() == FORCE and asked.user.may_operate
    words = ARROW.sub(" ", rest if forces else asked.text).casefold().split()
    if not words:
        return []
    found = Dependency.objects.registered()
    for word in words[:6]:
        found = found.filter(
            Q(caller__icontains=word) | Q(callee__icontains=word) | Q(owner__icontains=word)
        )
    entries: list[Entry] = []
    for one in found.order_by("caller", "callee")[:50]:
        entries += _of(one, words, forces)
    return sorted(entries, key=lambda entry: -entry.weight)[:FEW]


def _of(one: Dependency, words: Sequence[str], forces: bool) -> Sequence[Entry]:
    name = f"{one.caller}->{one.callee}"
    weight = matching.weight(words, f"{one.caller} {one.callee}", one.owner)
    weight = max(weight, matching.weight(words, one.callee))
    path = reverse("dependency_page", args=[one.caller, one.callee])
    detail = f"{one.criticality}" + (f" · {one.owner}" if one.owner else "")
    page = Entry("Dependency", name, "breaker-closed", path, detail, weight=weight, keeps=True)
    if not forces:
        return [page]
    path = reverse("override", args=[one.caller, one.callee])
    title = f"Force {name}…"
    force = Entry(
        ACTION, title, "override", path, "opens the form", in_dialog=True, weight=weight + 100
    )
    return [force, page]
