"""Response serializers of the dead letter API."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import serializers

from breakers.dead_letters.letters.redaction import configured_redaction
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.monitoring.groups import ErrorGroup
from breakers.dead_letters.removals import archive
from breakers.dead_letters.resources import EntryIdField
from controlplane.core.approvals.api import ApprovalShape
from controlplane.core.http.resources import OptionalTextField, Resource, TimestampField
from controlplane.notify.delivery.api import DeliveryShape

SERVER = OpenApiParameter(
    "server",
    str,
    OpenApiParameter.QUERY,
    description="Name of a Redis server, `default` if omitted.",
)
ANY_SERVER = OpenApiParameter(
    "server",
    str,
    OpenApiParameter.QUERY,
    description="Name of a Redis server. Every path of dead letters accepts it; where the path "
    "has the id of a letter, message or job, it changes nothing.",
)
STREAM = OpenApiParameter(
    "name",
    str,
    OpenApiParameter.PATH,
    description="Percent-encoded name of the stream, which may contain any characters.",
)
MESSAGE = OpenApiParameter(
    "entry_id", str, OpenApiParameter.PATH, description="Entry id, such as `1700000000000-0`."
)
ONE_STREAM, ONE_MESSAGE = (STREAM,), (STREAM, MESSAGE)


class RedactedField(serializers.CharField):
    """A text in which the values under hidden keys (`DLQ_HIDDEN_KEYS`) are redacted."""

    def to_representation(self, value: str) -> str:
        return configured_redaction().redact_text(value.encode()).decode("utf-8", "replace")


class RestorableField(serializers.BooleanField):
    """True if a removed letter can still be restored at `now`, given by the serializer context."""

    def to_representation(self, value: Any) -> bool:
        return archive.is_restorable(value, self.context["now"])


class RestorableUntilField(TimestampField):
    """The time until which a removed letter can be restored, null if it can't."""

    def to_representation(self, value: Any) -> Any:
        until = archive.restorable_until(value)
        return None if until is None else super().to_representation(until)


class DeadLetterStreamShape(serializers.Serializer[LetterStream]):
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
    vanished_total = serializers.IntegerField(help_text="Letters that other Redis clients removed.")
    sampled_at = serializers.DateTimeField(allow_null=True)
    gone_at = serializers.DateTimeField(allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        """Add the field `source`. It can't be declared, as DRF uses the attribute of that name."""
        return {
            "source": serializers.ChoiceField(LetterStream.Source.values),
            **super().get_fields(),
        }


VALUE: dict[str, Any] = {
    "description": "A text is a string; a binary or truncated value is an object.",
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
            "description": "A repeated name has a list of its values.",
        },
    }
)
class FieldsShape(serializers.JSONField):
    """The fields of a letter as :func:`letters.presentation.display_fields` returns them."""


class DeadLetterShape(serializers.Serializer[Any]):
    """A dead letter.

    Metadata that the entry lacks is null. Values under secret keys are `[redacted]`.
    """

    id = serializers.CharField()
    error = serializers.CharField(allow_null=True)
    error_type = serializers.CharField(allow_null=True)
    fingerprint = serializers.CharField()
    attempts = serializers.IntegerField(allow_null=True)
    failed_at = serializers.DateTimeField(allow_null=True)
    added_at = serializers.DateTimeField(allow_null=True)
    group = serializers.CharField(allow_null=True, help_text="Consumer group that failed.")
    original_id = serializers.CharField(allow_null=True)
    retries = serializers.IntegerField()
    retry_of = serializers.CharField(allow_null=True)
    size_bytes = serializers.IntegerField()
    fields_total = serializers.IntegerField()
    truncated = serializers.BooleanField(help_text="True if the response omits a part of it.")

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "fields": FieldsShape()}


class DeadLetterPageShape(serializers.Serializer[Any]):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(
        allow_null=True, help_text="Always null: pages can only be read forward."
    )
    results = DeadLetterShape(many=True)
    looked_at = serializers.IntegerField(help_text="Number of letters read to fill this page.")
    looked_to = serializers.CharField(allow_null=True, help_text="Id of the last letter read.")
    complete = serializers.BooleanField(
        help_text="True if this is the last page and every letter has been indexed."
    )


class FieldChangeShape(serializers.Serializer[Any]):
    path = serializers.CharField()
    before = serializers.JSONField(help_text="Null if the value was added.")
    after = serializers.JSONField(help_text="Null if the value was removed.")


class LetterEventShape(serializers.Serializer[Any]):
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
    departure = serializers.IntegerField(required=False, help_text="Id in the archive.")
    edited = serializers.BooleanField(required=False)
    changes = FieldChangeShape(many=True, required=False)


class DeadLetterDetailShape(DeadLetterShape):
    server = serializers.CharField()
    stream = serializers.CharField()
    history = LetterEventShape(many=True)


class RevealedLetterShape(DeadLetterShape):
    server = serializers.CharField()
    stream = serializers.CharField()
    revealed = serializers.BooleanField()
    dry_run = serializers.BooleanField(required=False)


class LetterGroupShape(Resource[ErrorGroup]):
    """Letters of a stream with the same error."""

    fingerprint = serializers.CharField()
    error_type = RedactedField()
    pattern = RedactedField(help_text="The error with its varying parts masked.")
    sample = RedactedField()
    count = serializers.IntegerField()
    failed_again = serializers.IntegerField(help_text="Letters that were retried before.")
    first = TimestampField(source="first_at")
    last = TimestampField(source="last_at")
    first_at = TimestampField(help_text="The same as `first`.")
    last_at = TimestampField(help_text="The same as `last`.")
    oldest_id = EntryIdField(source="oldest")
    newest_id = EntryIdField(source="newest")


class LetterGroupsShape(serializers.Serializer[Any]):
    results = LetterGroupShape(many=True)
    complete = serializers.BooleanField(help_text="False while letters are still being indexed.")


class RetriedLetterShape(serializers.Serializer[Any]):
    retried = serializers.BooleanField()
    id = serializers.CharField()
    new_id = serializers.CharField(allow_null=True, help_text="Entry id in the origin stream.")
    repeated = serializers.BooleanField(help_text="True if an earlier request did this already.")
    delivery = serializers.CharField(help_text="`exactly once` or `at least once`.")
    dry_run = serializers.BooleanField(required=False)


class DiscardedLetterShape(serializers.Serializer[Any]):
    discarded = serializers.BooleanField()
    id = serializers.CharField()
    departure = serializers.IntegerField(allow_null=True, help_text="Id in the archive.")
    repeated = serializers.BooleanField()
    dry_run = serializers.BooleanField(required=False)


class ArchivedLetterShape(serializers.Serializer[Departure]):
    """A letter that was removed, or is being removed."""

    id = serializers.IntegerField()
    server = serializers.CharField(source="stream.server")
    stream = serializers.CharField(source="stream.name")
    message_id = serializers.CharField(source="entry_id")
    action = serializers.ChoiceField(Departure.Action.values)
    state = serializers.ChoiceField(Departure.State.values)
    reason = serializers.CharField()
    by = serializers.CharField()
    intended_at = TimestampField()
    done_at = TimestampField(allow_null=True)
    new_id = OptionalTextField()
    job = serializers.IntegerField(source="job_id", allow_null=True)
    error = RedactedField()
    error_type = RedactedField()
    fingerprint = serializers.CharField()
    retry_of = OptionalTextField()
    size_bytes = serializers.IntegerField()
    restored_by = OptionalTextField()
    restored_at = TimestampField(allow_null=True)
    restore_reason = serializers.CharField()
    restorable = RestorableField(source="*")
    restorable_until = RestorableUntilField(source="*", allow_null=True)


class ArchivedLetterDetailShape(ArchivedLetterShape):
    truncated = serializers.BooleanField()
    attempts = serializers.IntegerField(allow_null=True)
    failed_at = serializers.DateTimeField(allow_null=True)
    group = serializers.CharField(allow_null=True)
    edited_fields = FieldsShape(
        allow_null=True, help_text="Edited message that was added to the origin."
    )
    history = LetterEventShape(many=True)

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "fields": FieldsShape()}


class RestoredLetterShape(ArchivedLetterShape):
    restored = serializers.BooleanField()
    departure = serializers.IntegerField()
    dry_run = serializers.BooleanField(required=False)


class DeadLetterJobPlanShape(serializers.Serializer[Any]):
    eligible = serializers.IntegerField()
    failed_again = serializers.IntegerField(
        help_text="Eligible letters that were retried before and failed again."
    )
    ineligible = serializers.IntegerField()
    why = serializers.DictField(child=serializers.IntegerField())
    complete = serializers.BooleanField(help_text="False if time ran out before the last letter.")
    looked_at = serializers.IntegerField()
    preview = serializers.ListField(
        child=serializers.DictField(),
        required=False,
        help_text="With an edit: up to three letters that it changes, each with its changes.",
    )
    dry_run = serializers.BooleanField()


class PurgeApprovalShape(serializers.Serializer[Any]):
    approval = ApprovalShape()


class OutboxLetterActionShape(DeliveryShape):
    retried = serializers.BooleanField(required=False)
    discarded = serializers.BooleanField(required=False)
    dry_run = serializers.BooleanField(required=False)
