"""Serializers that render an API response and declare its OpenAPI schema."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import cache, cached_property, partial
from typing import Any, Self, TypeVar

from rest_framework import serializers

from controlplane.core.canonical import timestamp


class TimestampField(serializers.DateTimeField):
    """A field for a time, rendered as RFC 3339 in UTC with a `Z`."""

    def to_representation(self, value: datetime) -> str:
        return timestamp(value)


class RateField(serializers.FloatField):
    """A field for a rate, such as calls per second, rendered with two decimals."""

    def to_representation(self, value: float) -> Any:
        return round(float(value), 2)


class PercentField(serializers.FloatField):
    """A field for a share from 0 to 100, rendered as an integer if it is whole: 25, but 12.5."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"min_value": 0, "max_value": 100, **options})

    def to_representation(self, value: Decimal | float) -> Any:
        percent = float(value)
        return int(percent) if percent.is_integer() else percent


class OptionalTextField(serializers.CharField):
    """A field for a text, rendered as null if it is empty."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_null": True, **options})

    def to_representation(self, value: str) -> Any:
        return value or None


T = TypeVar("T")
_MISSING = object()
_CONVERSIONS: Mapping[Any, Callable[[Any], Any]] = {
    serializers.CharField.to_representation: str,
    serializers.IntegerField.to_representation: int,
    serializers.FloatField.to_representation: float,
}
"""Built-in equivalents of DRF's conversions."""


class Resource(serializers.Serializer[T]):
    """The serializer of a response's JSON object.

    A field renders the attribute of its name, or the path in its `source`; with `allow_null` it
    renders null if a part of that path is None.
    """

    @classmethod
    def render(cls, instance: T) -> dict[str, Any]:
        """Return `instance` as a JSON-ready dict.

        Fields must not read `self.context`, because all threads share one serializer.
        """
        return cls._get_shared().to_representation(instance)

    @classmethod
    @cache
    def _get_shared(cls) -> Self:
        return cls()

    def to_representation(self, instance: T) -> dict[str, Any]:
        """Render the fields like DRF, faster: a source of one attribute is read directly."""
        read: Any = instance.get if isinstance(instance, Mapping) else partial(getattr, instance)
        values = {}
        for name, source, convert, field in self._steps:
            value = read(source, _MISSING) if source else _MISSING
            if value is _MISSING or callable(value):
                try:
                    value = field.get_attribute(instance)
                except serializers.SkipField:
                    continue
            values[name] = None if value is None else convert(value)
        return values

    @cached_property
    def _steps(self) -> list[tuple[str, str, Callable[[Any], Any], Any]]:
        """Steps to render each field: its name, the attribute to read, a conversion and the field.

        The attribute is "" if the field must read the value itself.
        """
        steps = []
        for field in self._readable_fields:
            kind, path = type(field), field.source_attrs
            is_plain = len(path) == 1 and kind.get_attribute is serializers.Field.get_attribute
            convert = _CONVERSIONS.get(kind.to_representation, field.to_representation)
            steps.append((str(field.field_name), path[0] if is_plain else "", convert, field))
        return steps
