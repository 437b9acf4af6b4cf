"""Command palette entries: the dead letters page and the streams."""

from collections.abc import Sequence
from operator import attrgetter

from django.db.models import Q
from django.urls import reverse

from controlplane.core.palette import relevance
from controlplane.core.palette.registry import (
    MAX_ENTRIES,
    PALETTE_SOURCES,
    PaletteCommand,
    PaletteEntry,
    PaletteQuery,
    register_commands,
)

from .models import LetterStream

register_commands(
    40,
    PaletteCommand(
        "Dead letters",
        "letters",
        "dead_letters_page",
        keys="g d",
        words="dlq retry queue",
        has_team_filter=True,
    ),
)


@PALETTE_SOURCES.add(40)
def letter_streams(query: PaletteQuery) -> Sequence[PaletteEntry]:
    """Return entries of streams whose name or origin contains every word of the query."""
    found = LetterStream.objects.filter(gone_at__isnull=True)
    for word in query.words:
        found = found.filter(Q(name__icontains=word) | Q(origin__icontains=word))
    return [
        PaletteEntry(
            "Dead letters",
            one.name,
            "letters",
            reverse("letter_stream_page", args=[one.server, one.name]),
            f"{one.depth:,} on {one.server}",
            weight=query.weigh(
                relevance.score_text(query.words, one.name, one.origin), one.resource
            ),
            is_lasting=True,
            resource=one.resource,
        )
        for one in query.take(found.order_by("-depth", "name"), MAX_ENTRIES, attrgetter("resource"))
    ]
