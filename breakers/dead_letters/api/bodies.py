"""Request bodies and filters of dead letters; the services check the meaning of values."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from breakers.dead_letters import export, letter_list
from breakers.dead_letters.bulk import replays
from breakers.dead_letters.models import Departure
from breakers.dead_letters.sources import DEFAULT_SERVER
from controlplane.core.http.fields import Filters, Moment, MutationBody, Text
from controlplane.core.jobs.models import Job

CHOICE = {
    "fingerprint": "Of a group.",
    "error": "A part of the error, in any case.",
    "error_type": "All of it.",
    "q": "A part of any name or value, in any case.",
    "field": "A field, or a path into its JSON (`payload.order.items.0.sku`), that has to be there;"
    " or `path=value`.",
    "value": "What has to be there.",
    "before": "Failed before that time.",
    "after": "Failed then or later.",
}
LIVE = "live"
REASON = "What was wrong and what has changed since."


class ServerFilter(Filters):
    server = serializers.CharField(
        default=DEFAULT_SERVER,
        max_length=60,
        help_text="Name of a Redis server, as it was configured.",
    )


class InboxFilters(Filters):
    server = serializers.CharField(
        required=False, max_length=60, help_text="Only its streams; all of them without."
    )


class ChoiceFilters(ServerFilter):
    fingerprint = serializers.CharField(required=False, help_text=CHOICE["fingerprint"])
    error = serializers.CharField(required=False, help_text=CHOICE["error"])
    error_type = serializers.CharField(required=False, help_text=CHOICE["error_type"])
    q = serializers.CharField(required=False, trim_whitespace=False, help_text=CHOICE["q"])
    field = serializers.CharField(required=False, trim_whitespace=False, help_text=CHOICE["field"])
    value = serializers.CharField(required=False, trim_whitespace=False, help_text=CHOICE["value"])
    before = Moment(required=False, help_text=CHOICE["before"])
    after = Moment(required=False, help_text=CHOICE["after"])

    @classmethod
    def chosen(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Return those of the filters that select letters."""
        return {name: value for name, value in given.items() if name in CHOICE}


class MessageFilters(ChoiceFilters):
    cursor = serializers.CharField(required=False, help_text="Where to go on, from `next`.")
    limit = serializers.IntegerField(
        default=letter_list.DEFAULT_PAGE,
        min_value=1,
        help_text=f"Letters in a page; more than {letter_list.MAX_PAGE} count as that.",
    )


class LetterExportFilters(ChoiceFilters):
    format = serializers.ChoiceField(tuple(export.FORMATS), default="jsonl")


class ArchiveFilters(Filters):
    server = serializers.CharField(
        required=False, max_length=60, help_text="Of the stream; `default` if one is named."
    )
    stream = serializers.CharField(required=False, max_length=300)
    action = serializers.ChoiceField(Departure.Action.values, required=False)
    state = serializers.ChoiceField(Departure.State.values, required=False)
    by = serializers.CharField(required=False, max_length=200, help_text="`user:kim`.")
    fingerprint = serializers.CharField(required=False, max_length=16)
    error_type = serializers.CharField(required=False, max_length=200)
    message_id = serializers.CharField(required=False, max_length=41)
    job = serializers.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    before = Moment(required=False, help_text="Left before that time.")
    after = Moment(required=False, help_text="Left then or later.")


class ReplayFilters(Filters):
    server = serializers.CharField(required=False, max_length=60)
    stream = serializers.CharField(required=False, max_length=300)
    action = serializers.ChoiceField(replays.ACTIONS, required=False, help_text="What it does.")
    state = serializers.ChoiceField(
        (LIVE, *Job.State.values), required=False, help_text="`live`: not over yet."
    )


class StrictNumber(serializers.FloatField):
    """A JSON number; texts and booleans are refused."""

    default_error_messages = {"invalid": "Must be a number."}

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictInteger(serializers.IntegerField):
    """A JSON integer; texts and booleans are refused."""

    default_error_messages = {"invalid": "Must be a whole number."}

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return super().to_internal_value(data)


@extend_schema_field({"type": "object", "additionalProperties": True})
class Fields(serializers.JSONField):
    """Names and values; checked by `breakers.dead_letters.letters.edits`."""


@extend_schema_field(
    {
        "type": "object",
        "properties": {
            name: {"type": "string", "description": said} for name, said in CHOICE.items()
        },
    }
)
class Choice(serializers.JSONField):
    """Checked by `breakers.dead_letters.letters.filters`."""


class ReasonBody(MutationBody):
    reason = Text(help_text=REASON)


class RetryBody(ReasonBody):
    edited_fields = Fields(
        required=False,
        help_text="New values by name: text as it is, any other JSON as compact JSON, null takes "
        "the field out. All others stay as they were.",
    )


class RevealBody(MutationBody):
    reason = Text(required=False, max_length=2000, help_text="What you need to see it for.")


class JobBody(MutationBody):
    action = serializers.ChoiceField(replays.ACTIONS)
    stream = Text()
    server = Text(required=False, help_text="Of the stream; the parameter `server` says the same.")
    filter = Choice(required=False, help_text="Which letters are meant; all without.")
    rate_per_second = StrictNumber(required=False, help_text="At most so fast; 50.")
    most_retries = StrictInteger(
        required=False, help_text="Letters that were retried so often are left alone; 3."
    )
    waits_for = serializers.ListField(
        child=Text(),
        required=False,
        help_text="Dependencies (`core->oracle`) whose open breaker holds a retry; without it, "
        "those whose consumers read the origin.",
    )
    reason = Text(required=False, help_text=f"{REASON} Only a dry run needs none.")

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Refuse a null filter, which would otherwise select every letter."""
        if "filter" in data and data["filter"] is None:
            raise serializers.ValidationError({"filter": ["Must be an object; all without."]})
        return super().to_internal_value(data)


class ReplayVerbBody(MutationBody):
    reason = Text(required=False, max_length=2000, help_text="Why; it is kept in the audit trail.")
