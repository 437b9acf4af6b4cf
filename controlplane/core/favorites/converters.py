"""URL converter for the keys of favorites."""

from django.urls import register_converter
from django.urls.converters import StringConverter


class FavoriteKey(StringConverter):
    """Any text without NUL, which PostgreSQL can't store.

    The name of a stream may contain slashes and line ends.
    """

    regex = r"[^\0]+"


register_converter(FavoriteKey, "favorite_key")
PATH = "favorites/<slug:kind>/<favorite_key:key>"
