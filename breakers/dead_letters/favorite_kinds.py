"""Streams of dead letters as favorites, by server and name: `default/axiom:dlq:events`."""

from collections.abc import Collection, Mapping

from breakers.dead_letters.models import LetterStream
from breakers.dead_letters.monitoring import streams
from controlplane.core.favorites.services import FAVORITE_KINDS, FavoriteKind, FavoriteObject

KIND = "dead_letters"


def find_streams(keys: Collection[str]) -> Mapping[str, FavoriteObject]:
    names = [key.partition("/")[2] for key in keys]
    rows = streams.keep_served(LetterStream.objects.filter(name__in=names))
    return {
        str(one): FavoriteObject(
            "Outbox" if one.source == LetterStream.Source.OUTBOX else one.name, one.page_url
        )
        for one in rows
        if str(one) in keys
    }


FAVORITE_KINDS.register(FavoriteKind(KIND, "Dead letters", "letters", find_streams))
