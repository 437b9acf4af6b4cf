"""Where the pages of dead letters are. A stream's name may have any characters, `/` too: it comes
last in an address, and what is about one entry stands before it, behind a dash."""

from django.urls import register_converter, reverse

from breakers.models.dead_letters import LetterStream


class StreamName:
    """Any name of a key in Redis, whatever is in it."""

    regex = r"[\s\S]+"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class EntryId:
    """`1700000000000-0`."""

    regex = r"[0-9]{1,20}-[0-9]{1,20}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(StreamName, "letter_stream")
register_converter(EntryId, "letter_id")


def of_stream(stream: LetterStream) -> str:
    if stream.source == LetterStream.Source.OUTBOX:
        return f"{reverse('deliveries_page')}?state=failed"
    return reverse("letter_stream_page", args=[stream.server, stream.name])


def of_letter(stream: LetterStream, entry_id: str, what: str = "letter_page") -> str:
    return reverse(what, args=[stream.server, entry_id, stream.name])
