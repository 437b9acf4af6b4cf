"""Serializer fields of request bodies and filters, without implicit type conversion."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from django.utils.dateparse import parse_date, parse_datetime
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.core.http.parameters import MAX_NAME_LENGTH, MAX_NAMED, build_unknown_message


class Text(serializers.CharField):
    """A string field that accepts no numbers; services validate the text further."""

    default_error_messages = {"invalid": "Must be a string."}

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, "allow_blank": True, **options})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Flag(serializers.BooleanField):
    """A boolean field that accepts JSON's true and false only, no strings."""

    default_error_messages = {"invalid": "Must be true or false, without quotes."}

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid")
        return bool(data)


@extend_schema_field(OpenApiTypes.DATETIME)
class Instant(serializers.DateTimeField):
    """A time with an offset, such as `2026-11-21T09:00:00Z`, converted to UTC."""

    default_error_messages = {"naive": "Needs an offset, as 2026-11-21T09:00:00Z."}

    def enforce_timezone(self, value: datetime) -> datetime:
        if value.tzinfo is None:
            self.fail("naive")
        try:
            return value.astimezone(UTC)
        except OverflowError:
            self.fail("overflow")


@extend_schema_field(OpenApiTypes.STR)
class Moment(serializers.Field[datetime, str, str, Any]):
    """A time as a filter: RFC 3339 with an offset, or a date, which means midnight in UTC."""

    default_error_messages = {
        "invalid": "Must be a time with an offset, as 2026-11-21T02:10:00Z, or a date."
    }

    def to_internal_value(self, data: str) -> datetime:
        # In a query string an unescaped + is a space.
        text = data.strip().replace(" ", "+") if "T" in data else data.strip()
        try:
            day, moment = parse_date(text), parse_datetime(text)
        except ValueError:
            self.fail("invalid")
        if day is not None:
            return datetime(day.year, day.month, day.day, tzinfo=UTC)
        if moment is None or moment.tzinfo is None:
            self.fail("invalid")
        return moment


class Body(serializers.Serializer[Any]):
    """A request's JSON object; null means absent for optional fields.

    Unknown fields are errors, so that a misspelled `dryrun` does not run for real. Bodies whose
    format another product defines set `ignores_unknown`.
    """

    ignores_unknown: ClassVar[bool] = False
    response_shape: ClassVar[type[serializers.Serializer[Any]] | None] = None
    """Serializer of the response; a request may contain its fields, which are ignored."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        unknown = set() if self.ignores_unknown else data.keys() - self.fields.keys()
        if unknown and self.response_shape is not None:
            unknown -= self.response_shape().fields.keys()
        if unknown:
            raise serializers.ValidationError(
                {
                    name[:MAX_NAME_LENGTH]: [build_unknown_message(name, self.fields, "field")]
                    for name in sorted(unknown)[:MAX_NAMED]
                }
            )
        optional = {name for name, field in self.fields.items() if not field.required}
        present = {k: v for k, v in data.items() if v is not None or k not in optional}
        values: dict[str, Any] = super().to_internal_value(present)
        return values

    def read(self) -> dict[str, Any]:
        """Return the validated fields. Raise DRF's ValidationError if any is invalid."""
        self.is_valid(raise_exception=True)
        return dict(self.validated_data)


class Filters(serializers.Serializer[Any]):
    """Query parameters of a list. An empty parameter, as HTML forms send it, counts as absent."""

    @classmethod
    def parse(cls, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return the validated filters. Raise DRF's ValidationError if any is invalid."""
        filters = cls(data={name: value for name, value in parameters.items() if value != ""})
        filters.is_valid(raise_exception=True)
        return dict(filters.validated_data)


class EmptyBody(Body):
    dry_run = Flag(
        required=False, help_text="Respond as if the change were made, without making it."
    )


class StrictIntegerField(serializers.IntegerField):
    """An integer field that rejects texts and booleans."""

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return int(data)
