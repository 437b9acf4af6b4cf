"""Serializers that render an API response and declare its OpenAPI schema."""

from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any, Self, TypeVar

from rest_framework import serializers

from controlplane.core.canonical import timestamp


class TimestampField(serializers.DateTimeField):
    """A time, rendered as RFC 3339 in UTC with a `Z`."""

    def to_representation(self, value: datetime) -> str:
        return timestamp(value)


class RateField(serializers.FloatField):
    """A rate, such as calls per second, rendered with two decimals."""

    def to_representation(self, value: float) -> Any:
        return round(float(value), 2)


class PercentField(serializers.FloatField):
    """A share from 0 to 100, rendered as an integer if it is whole: 25, but 12.5."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"min_value": 0, "max_value": 100, **options})

    def to_representation(self, value: Decimal | float) -> Any:
        percent = float(value)
        return int(percent) if percent.is_integer() else percent


class NullableTextField(serializers.CharField):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_null": True, **options})

    def to_representation(self, value: str) -> Any:
        return value or None


T = TypeVar("T")


class OptionalTextField(serializers.CharField):
    """A text, rendered as null if it is empty."""

    def __init__(self) -> None:
        super().__init__(allow_null=True)

    def to_representation(self, value: str) -> Any:
        return value or None


class Resource(serializers.Serializer[T]):
    """The serializer of a response's JSON object.

    A field renders the attribute of its name, or the path in its `source`; with `allow_null` it
    renders null if a part of that path is None.
    """

    @classmethod
    def render(cls, instance: T) -> dict[str, Any]:
        """Return `instance` as a JSON-ready dict.

        Fields must not read `context`: one serializer per class renders in all threads.
        """
        return dict(cls._get_shared().to_representation(instance))

    @classmethod
    @cache
    def _get_shared(cls) -> Self:
        return cls()
