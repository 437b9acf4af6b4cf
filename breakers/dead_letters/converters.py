"""URL converters of dead letters."""

from django.urls import register_converter


class StreamName:
    """A stream's name: any Redis key, with `/` and line ends too."""

    regex = r"[\s\S]+"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class EntryId:
    """An entry's id: `1700000000000-0`."""

    regex = r"[0-9]{1,20}-[0-9]{1,20}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(StreamName, "letter_stream")
register_converter(EntryId, "letter_id")
STREAM_NAME = "<letter_stream:name>"
