"""URL converter for the keys of favorites."""

from django.urls import register_converter
from django.urls.converters import StringConverter


class FavoriteKey(StringConverter):
    """Any text, because a stream's name may contain slashes and line ends."""

    regex = r"[\s\S]+"


register_converter(FavoriteKey, "favorite_key")
PATH = "favorites/<str:kind>/<favorite_key:key>"
