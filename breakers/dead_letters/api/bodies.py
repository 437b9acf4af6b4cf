"""Request bodies and query filters of the dead letter API."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from breakers.dead_letters import letter_list
from breakers.dead_letters.bulk import replays
from breakers.dead_letters.letters.field_edits import OPERATIONS
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.models import Departure
from breakers.dead_letters.sources import DEFAULT_SERVER
from controlplane.core.http.fields import EmptyBody, Filters, Moment, StrictIntegerField, Text
from controlplane.core.jobs.models import Job
from controlplane.core.team_filter import TEAM_HELP

CRITERIA = {
    "fingerprint": "Fingerprint of a group.",
    "error": "Part of the error, case-insensitive.",
    "error_type": "Exact error type.",
    "q": "Part of any field name or value, case-insensitive.",
    "field": (
        "Field name, or path into its JSON (`payload.order.items.0.sku`), that must exist; or"
        " `path=value`."
    ),
    "value": "Value that the field must have.",
    "ids": "Letter ids separated by commas; at most 200.",
    "before": "Failed before this time.",
    "after": "Failed at this time or later.",
}
LIVE = "live"
REASON = "The cause of the failure, and what has changed since."


class ServerFilter(Filters):
    server = serializers.CharField(
        default=DEFAULT_SERVER,
        max_length=60,
        help_text="Name of a configured Redis server.",
    )


class InboxFilters(Filters):
    server = serializers.CharField(
        required=False, max_length=60, help_text="List only the streams of this Redis server."
    )
    team = serializers.CharField(required=False, max_length=60, help_text=TEAM_HELP)


class LetterFilters(ServerFilter):
    fingerprint = serializers.CharField(required=False, help_text=CRITERIA["fingerprint"])
    error = serializers.CharField(required=False, help_text=CRITERIA["error"])
    error_type = serializers.CharField(required=False, help_text=CRITERIA["error_type"])
    q = serializers.CharField(required=False, trim_whitespace=False, help_text=CRITERIA["q"])
    field = serializers.CharField(
        required=False, trim_whitespace=False, help_text=CRITERIA["field"]
    )
    value = serializers.CharField(
        required=False, trim_whitespace=False, help_text=CRITERIA["value"]
    )
    ids = serializers.CharField(required=False, help_text=CRITERIA["ids"])
    before = Moment(required=False, help_text=CRITERIA["before"])
    after = Moment(required=False, help_text=CRITERIA["after"])

    @staticmethod
    def build_filter(given: dict[str, Any]) -> LetterFilter:
        """Return the letter filter of these query parameters. Raises :class:`InvalidInput`."""
        return LetterFilter.from_mapping(
            {name: value for name, value in given.items() if name in CRITERIA}
        )


class MessageFilters(LetterFilters):
    cursor = serializers.CharField(required=False, help_text="Cursor from the `next` link.")
    limit = serializers.IntegerField(
        default=letter_list.DEFAULT_PAGE,
        min_value=1,
        help_text=f"Letters per page, {letter_list.MAX_PAGE} at most.",
    )


class ArchiveFilters(Filters):
    server = serializers.CharField(
        required=False, max_length=60, help_text="Redis server; `default` if `stream` is given."
    )
    stream = serializers.CharField(required=False, max_length=300)
    action = serializers.ChoiceField(Departure.Action.values, required=False)
    state = serializers.ChoiceField(Departure.State.values, required=False)
    by = serializers.CharField(
        required=False, max_length=200, help_text="Actor, such as `user:kim`."
    )
    fingerprint = serializers.CharField(required=False, max_length=16)
    error_type = serializers.CharField(required=False, max_length=200)
    message_id = serializers.CharField(required=False, max_length=41)
    job = serializers.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    before = Moment(required=False, help_text="Removed before this time.")
    after = Moment(required=False, help_text="Removed at this time or later.")


class ReplayFilters(Filters):
    server = serializers.CharField(required=False, max_length=60)
    stream = serializers.CharField(required=False, max_length=300)
    action = serializers.ChoiceField(
        replays.ACTIONS, required=False, help_text="Action of the job."
    )
    state = serializers.ChoiceField(
        (LIVE, *Job.State.values), required=False, help_text="`live` for unfinished jobs."
    )


class StrictNumber(serializers.FloatField):
    """A JSON number; texts and booleans are rejected."""

    default_error_messages = {"invalid": "Must be a number."}

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        return super().to_internal_value(data)


@extend_schema_field({"type": "object", "additionalProperties": True})
class Fields(serializers.JSONField):
    """A JSON object of new values by name of the edited field; `letters.edits` validates it."""


@extend_schema_field(
    {
        "type": "object",
        "properties": {
            name: {"type": "string", "description": text} for name, text in CRITERIA.items()
        },
    }
)
class LetterFilterField(serializers.JSONField):
    """A letter filter as JSON; validated by `letters.filters`."""


@extend_schema_field(
    {
        "type": "object",
        "required": ["op", "path"],
        "properties": {
            "op": {"type": "string", "enum": list(OPERATIONS)},
            "path": {"type": "string", "description": CRITERIA["field"].partition(",")[0]},
            "value": {"description": "New JSON value to set or replace with."},
            "find": {"description": "Current JSON value to replace."},
        },
    }
)
class FieldEditField(serializers.JSONField):
    """A change of one field as JSON; validated by `letters.field_edits`."""


class ReasonBody(EmptyBody):
    reason = Text(help_text=REASON)


class RetryLetterBody(ReasonBody):
    edited_fields = Fields(
        required=False,
        help_text="New values by field name: a text is stored as it is, another JSON value as "
        "compact JSON, null removes the field. Other fields stay unchanged.",
    )


class RevealBody(EmptyBody):
    reason = Text(required=False, max_length=2000, help_text="Why you need to see the letter.")


class DeadLetterJobBody(EmptyBody):
    action = serializers.ChoiceField(replays.ACTIONS)
    stream = Text()
    server = Text(
        required=False, help_text="Redis server of the stream, as an alternative to the parameter."
    )
    filter = LetterFilterField(required=False, help_text="Letters to process, all if omitted.")
    edit = FieldEditField(
        required=False,
        help_text="One change of each message before it is retried. Letters that it does not "
        "change are skipped. The original message stays in the archive.",
    )
    rate_per_second = StrictNumber(
        required=False, help_text="Maximum number of letters per second, 50 if omitted."
    )
    most_retries = StrictIntegerField(
        required=False,
        error_messages={"invalid": "Must be a whole number."},
        help_text="Letters with this many retries are skipped; 3 if omitted.",
    )
    waits_for = serializers.ListField(
        child=Text(),
        required=False,
        help_text="Dependencies (`core->oracle`) whose open breaker holds a retry; if omitted, the "
        "dependencies whose consumers read the origin stream.",
    )
    reason = Text(required=False, help_text=f"{REASON} Optional for a dry run.")

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Reject a null filter, which would otherwise select every letter."""
        if "filter" in data and data["filter"] is None:
            raise serializers.ValidationError(
                {"filter": ["Must be an object; omit it to select all."]}
            )
        return super().to_internal_value(data)


class DeadLetterJobActionBody(EmptyBody):
    reason = Text(required=False, max_length=2000, help_text="Reason for the audit trail.")
