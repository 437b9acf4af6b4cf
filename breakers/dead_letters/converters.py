"""What is in addresses of dead letters, for pages and the API."""

from django.urls import register_converter


class StreamName:
    """Any name of a key in Redis, whatever is in it: `/`, and ends of lines too."""

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
STREAM_NAME = "<letter_stream:name>"
