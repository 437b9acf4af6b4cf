"""Response serializers for the OpenAPI document."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import serializers

from breakers.dead_letters.bulk import replays
from breakers.dead_letters.models import Departure, LetterStream
from controlplane.core.approvals.api import ApprovalShape
from controlplane.core.jobs.resources import JobShape
from controlplane.notify.delivery.api import DeliveryShape

SERVER = OpenApiParameter(
    "server", str, OpenApiParameter.QUERY, description="Name of a Redis server; `default`."
)
ANY_SERVER = OpenApiParameter(
    "server",
    str,
    OpenApiParameter.QUERY,
    description="Name of a Redis server. Every path of dead letters accepts it; where the path "
    "has the id of a letter, message or job, it changes nothing.",
)
STREAM = OpenApiParameter(
    "name", str, OpenApiParameter.PATH, description="Its name, percent-encoded; it may have any "
    "characters, `/` too.",
)  # fmt: skip
MESSAGE = OpenApiParameter("entry_id", str, OpenApiParameter.PATH, description="`1700000000000-0`.")
ONE_STREAM, ONE_MESSAGE = (STREAM,), (STREAM, MESSAGE)


class StreamShape(serializers.Serializer[LetterStream]):
    server = serializers.CharField()
    name = serializers.CharField()
    origin = serializers.CharField(allow_null=True)
    depth = serializers.IntegerField()
    oldest_at = serializers.DateTimeField(allow_null=True)
    newest_at = serializers.DateTimeField(allow_null=True)
    growth_per_minute = serializers.FloatField()
    alerting = serializers.BooleanField()
    alerting_since = serializers.DateTimeField(allow_null=True)
    arrived_total = serializers.IntegerField()
    retried_total = serializers.IntegerField()
    vanished_total = serializers.IntegerField(help_text="Gone, and not through us.")
    sampled_at = serializers.DateTimeField(allow_null=True)
    gone_at = serializers.DateTimeField(allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        """Add `source`, a name that the serializer has taken."""
        return {
            "source": serializers.ChoiceField(LetterStream.Source.values),
            **super().get_fields(),
        }


VALUE: dict[str, Any] = {
    "description": "Text as it is; what is no text, or longer than what is shown, as an object.",
    "oneOf": [
        {"type": "string"},
        {
            "type": "object",
            "required": ["bytes"],
            "properties": {
                "text": {"type": "string"},
                "base64": {"type": "string"},
                "bytes": {"type": "integer"},
                "truncated": {"type": "boolean"},
            },
        },
    ],
}


@extend_schema_field(
    {
        "type": "object",
        "additionalProperties": {
            "anyOf": [VALUE, {"type": "array", "items": VALUE}],
            "description": "A name that comes more than once has a list.",
        },
    }
)
class FieldsShape(serializers.JSONField):
    """Fields as `breakers.dead_letters.letters.presentation` shows them."""


class LetterShape(serializers.Serializer[Any]):
    """A letter. Fields that the entry lacks are null. Values under secret keys are `[redacted]`."""

    id = serializers.CharField()
    error = serializers.CharField(allow_null=True)
    error_type = serializers.CharField(allow_null=True)
    fingerprint = serializers.CharField()
    attempts = serializers.IntegerField(allow_null=True)
    failed_at = serializers.DateTimeField(allow_null=True)
    added_at = serializers.DateTimeField(allow_null=True)
    group = serializers.CharField(allow_null=True, help_text="The consumer group that failed.")
    original_id = serializers.CharField(allow_null=True)
    retries = serializers.IntegerField()
    retry_of = serializers.CharField(allow_null=True)
    size_bytes = serializers.IntegerField()
    fields_total = serializers.IntegerField()
    truncated = serializers.BooleanField(help_text="Not all of it is shown.")

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "fields": FieldsShape()}


class PageShape(serializers.Serializer[Any]):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True, help_text="Always null: pages go one way.")
    results = LetterShape(many=True)
    looked_at = serializers.IntegerField(help_text="So many letters were looked at for this page.")
    looked_to = serializers.CharField(allow_null=True, help_text="The last of them.")
    complete = serializers.BooleanField(
        help_text="There are no more, and none that is still to be read for the first time."
    )


class ChangeShape(serializers.Serializer[Any]):
    path = serializers.CharField()
    before = serializers.JSONField(help_text="Null: it was not there.")
    after = serializers.JSONField(help_text="Null: it is not there.")


class EventShape(serializers.Serializer[Any]):
    kind = serializers.CharField(
        help_text="failed, retried, discarded, purged, archived, restored, leaving or gone."
    )
    id = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField(required=False)
    error_type = serializers.CharField(required=False)
    group = serializers.CharField(required=False)
    attempts = serializers.IntegerField(required=False)
    by = serializers.CharField(required=False)
    reason = serializers.CharField(required=False)
    action = serializers.CharField(required=False)
    new_id = serializers.CharField(required=False)
    departure = serializers.IntegerField(required=False, help_text="Its id in the archive.")
    edited = serializers.BooleanField(required=False)
    changes = ChangeShape(many=True, required=False)


class MessageShape(LetterShape):
    server = serializers.CharField()
    stream = serializers.CharField()
    history = EventShape(many=True)


class RevealedShape(LetterShape):
    server = serializers.CharField()
    stream = serializers.CharField()
    revealed = serializers.BooleanField()
    dry_run = serializers.BooleanField(required=False)


class GroupShape(serializers.Serializer[Any]):
    fingerprint = serializers.CharField()
    error_type = serializers.CharField()
    pattern = serializers.CharField(help_text="The error with what varies taken out.")
    sample = serializers.CharField()
    count = serializers.IntegerField()
    first = serializers.DateTimeField()
    last = serializers.DateTimeField()
    first_at = serializers.DateTimeField(help_text="The same as `first`.")
    last_at = serializers.DateTimeField(help_text="The same as `last`.")
    oldest_id = serializers.CharField()
    newest_id = serializers.CharField()


class GroupsShape(serializers.Serializer[Any]):
    results = GroupShape(many=True)
    complete = serializers.BooleanField(help_text="False while letters are still being read.")


class RetriedShape(serializers.Serializer[Any]):
    retried = serializers.BooleanField()
    id = serializers.CharField()
    new_id = serializers.CharField(allow_null=True, help_text="Its id in the origin.")
    repeated = serializers.BooleanField(help_text="It had been done before.")
    delivery = serializers.CharField(help_text="`exactly once` or `at least once`.")
    dry_run = serializers.BooleanField(required=False)


class DiscardedShape(serializers.Serializer[Any]):
    discarded = serializers.BooleanField()
    id = serializers.CharField()
    departure = serializers.IntegerField(allow_null=True, help_text="Its id in the archive.")
    repeated = serializers.BooleanField()
    dry_run = serializers.BooleanField(required=False)


class DepartureShape(serializers.Serializer[Departure]):
    id = serializers.IntegerField()
    server = serializers.CharField()
    stream = serializers.CharField()
    message_id = serializers.CharField()
    action = serializers.ChoiceField(Departure.Action.values)
    state = serializers.ChoiceField(Departure.State.values)
    reason = serializers.CharField()
    by = serializers.CharField()
    intended_at = serializers.DateTimeField()
    done_at = serializers.DateTimeField(allow_null=True)
    new_id = serializers.CharField(allow_null=True)
    job = serializers.IntegerField(allow_null=True)
    error = serializers.CharField()
    error_type = serializers.CharField()
    fingerprint = serializers.CharField()
    retry_of = serializers.CharField(allow_null=True)
    size_bytes = serializers.IntegerField()
    restored_by = serializers.CharField(allow_null=True)
    restored_at = serializers.DateTimeField(allow_null=True)
    restore_reason = serializers.CharField()
    restorable = serializers.BooleanField()
    restorable_until = serializers.DateTimeField(allow_null=True)


class WholeDepartureShape(DepartureShape):
    truncated = serializers.BooleanField()
    attempts = serializers.IntegerField(allow_null=True)
    failed_at = serializers.DateTimeField(allow_null=True)
    group = serializers.CharField(allow_null=True)
    edited_fields = FieldsShape(allow_null=True, help_text="What went to the origin instead.")
    history = EventShape(many=True)

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "fields": FieldsShape()}


class RestoredShape(DepartureShape):
    restored = serializers.BooleanField()
    departure = serializers.IntegerField()
    dry_run = serializers.BooleanField(required=False)


class ReplayShape(JobShape):
    checkpoint = serializers.JSONField(help_text="Where its present step goes on, or null.")
    stream = serializers.CharField()
    server = serializers.CharField()
    action = serializers.ChoiceField(replays.ACTIONS)
    filter = serializers.DictField()
    until = serializers.CharField(help_text="The last letter that is meant.")
    counts = serializers.DictField(help_text="done, gone, skipped, and why; looked_at.")
    rate_per_second = serializers.FloatField()
    most_retries = serializers.IntegerField()
    waits_for = serializers.ListField(child=serializers.CharField())
    approval = serializers.IntegerField(allow_null=True)


class PlanShape(serializers.Serializer[Any]):
    eligible = serializers.IntegerField()
    ineligible = serializers.IntegerField()
    why = serializers.DictField(child=serializers.IntegerField())
    complete = serializers.BooleanField(help_text="False if there was no time to look at all.")
    looked_at = serializers.IntegerField()
    dry_run = serializers.BooleanField()


class PurgeAskedShape(serializers.Serializer[Any]):
    approval = ApprovalShape()


class FailedDeliveryShape(DeliveryShape):
    retried = serializers.BooleanField(required=False)
    discarded = serializers.BooleanField(required=False)
    dry_run = serializers.BooleanField(required=False)
