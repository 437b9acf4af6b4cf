"""URL converters for stream names and entry ids."""

from django.urls import register_converter
from django.urls.converters import StringConverter


class StreamName(StringConverter):
    """Stream name: any Redis key, including `/` and line ends."""

    regex = r"[\s\S]+"


class EntryId(StringConverter):
    """Redis stream entry id, such as `1700000000000-0`."""

    regex = r"[0-9]{1,20}-[0-9]{1,20}"


register_converter(StreamName, "letter_stream")
register_converter(EntryId, "letter_id")
STREAM_NAME = "<letter_stream:name>"
