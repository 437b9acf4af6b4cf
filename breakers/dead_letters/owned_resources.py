"""Registration of dead letter streams as resources that teams can own."""

from collections.abc import Collection, Iterable, Mapping

from django.urls import reverse

from controlplane.core.clock import db_now
from controlplane.core.owned_resources import OWNED_KINDS, OwnedKind

from .models import LetterStream
from .monitoring import streams


def list_streams() -> Iterable[str]:
    """Return the streams that the inbox shows; a stream of the same name may be on two servers."""
    shown = streams.keep_shown(LetterStream.objects.all(), db_now())
    return sorted({one.resource for one in shown if one.resource})


def find_paths(resources: Collection[str]) -> Mapping[str, str]:
    """Return the paths of the pages of streams; of those on several servers, that of the first."""
    names = [one.partition(":")[2] for one in resources]
    rows = LetterStream.objects.filter(name__in=names).order_by("-server")
    return {
        f"stream:{name}": reverse("letter_stream_page", args=[server, name])
        for server, name in rows.values_list("server", "name")
    }


OWNED_KINDS.register(OwnedKind("stream", "stream", "streams", 50, list_streams, find_paths))
