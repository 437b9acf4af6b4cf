"""URLs of dead letter pages."""

from django.urls import reverse

from breakers.dead_letters.models import LetterStream


def stream_url(stream: LetterStream) -> str:
    if stream.source == LetterStream.Source.OUTBOX:
        return f"{reverse('deliveries_page')}?state=failed"
    return reverse("letter_stream_page", args=[stream.server, stream.name])


def letter_url(stream: LetterStream, entry_id: str, what: str = "letter_page") -> str:
    return reverse(what, args=[stream.server, entry_id, stream.name])
