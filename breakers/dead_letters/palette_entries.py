"""Palette entries of dead letters: their page and the streams."""

from collections.abc import Sequence

from django.db.models import Q
from django.urls import reverse

from controlplane.core.palette import matching
from controlplane.core.palette.registry import FEW, Asked, Command, Entry, commands, things

from .models import LetterStream

commands(
    40,
    Command("Dead letters", "letters", "dead_letters_page", keys="g d", words="dlq retry queue"),
)


@things(40)
def letter_streams(asked: Asked) -> Sequence[Entry]:
    """Streams of dead letters, by name and origin."""
    found = LetterStream.objects.filter(gone_at__isnull=True)
    for word in asked.words[:6]:
        found = found.filter(Q(name__icontains=word) | Q(origin__icontains=word))
    return [
        Entry(
            "Dead letters",
            one.name,
            "letters",
            reverse("letter_stream_page", args=[one.server, one.name]),
            f"{one.depth:,} on {one.server}",
            weight=matching.weight(asked.words, one.name, one.origin),
            keeps=True,
        )
        for one in found.order_by("-depth", "name")[:FEW]
    ]
