"""Response serializers of the switch API for the OpenAPI document."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from controlplane.core.approvals.api import ApprovalShape
from controlplane.core.audit.api import ActorShape
from switches.models import Episode, OnExpiry, State, Switch
from switches.ramps.shapes import RampShape
from switches.resources import episode_resource
from switches.scopes import KEY_PATTERN, SCOPES, question_fields

ONE_SWITCH = (
    OpenApiParameter("scope", str, OpenApiParameter.PATH, enum=SCOPES.names),
    OpenApiParameter(
        "key",
        str,
        OpenApiParameter.PATH,
        pattern=f"^{KEY_PATTERN}$",
        description="Any key may be engaged without being registered first. Of global it is `all`.",
    ),
)


class EffectShape(serializers.Serializer[Any]):
    """The instances that applied the last published change, from their reports."""

    version = serializers.IntegerField()
    applied = serializers.IntegerField(help_text="Instances that say they apply it.")
    instances = serializers.IntegerField(help_text="Instances heard from within 30 seconds.")
    stragglers = serializers.ListField(
        child=serializers.CharField(), help_text="At most 20, those furthest behind first."
    )
    stragglers_total = serializers.IntegerField()
    silent_total = serializers.IntegerField(
        help_text="Instances that fell silent within 5 minutes and never said they apply it; they "
        "count neither as applying it nor as stragglers."
    )
    measured = serializers.IntegerField(
        help_text="Instances known before the commit that have said they apply it: those that "
        "p50_ms and p99_ms are of."
    )
    p50_ms = serializers.IntegerField(
        allow_null=True,
        help_text="From the commit, of those `measured` only. Null: not measured; with hundreds of "
        "instances a long list measures its newest changes only.",
    )
    p99_ms = serializers.IntegerField(allow_null=True, help_text="As p50_ms.")
    requested_at = serializers.DateTimeField(allow_null=True)
    committed_at = serializers.DateTimeField(allow_null=True)


class SwitchShape(serializers.Serializer[Switch]):
    id = serializers.CharField()
    scope = serializers.ChoiceField(SCOPES.names)
    key = serializers.CharField()
    state = serializers.ChoiceField(State.values)
    allow_percent = serializers.FloatField(min_value=0, max_value=100)
    reason = serializers.CharField(allow_null=True)
    engaged_by = serializers.CharField(allow_null=True)
    engaged_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)
    on_expiry = serializers.ChoiceField(OnExpiry.values, allow_null=True)
    permanent = serializers.BooleanField()
    overdue = serializers.BooleanField()
    version = serializers.IntegerField(help_text="Of its last published change; 0 before one.")
    owner = serializers.CharField()
    description = serializers.CharField()
    runbook_url = serializers.CharField()
    last_proven_at = serializers.DateTimeField(allow_null=True)
    ramp = serializers.IntegerField(
        allow_null=True, help_text="The ramp that is under way or waits for approval."
    )
    effect = EffectShape(allow_null=True, help_text="Null if never published.")


class CallerShape(serializers.Serializer[Any]):
    id = serializers.CharField(help_text="`service/instance`, or `token:<name>`.")
    service = serializers.CharField()
    calls_per_second = serializers.FloatField(help_text="Over the last minute.")
    blocked_per_second = serializers.FloatField()
    last_seen = serializers.DateTimeField()


class CallingServiceShape(serializers.Serializer[Any]):
    service = serializers.CharField()
    instances = serializers.IntegerField()
    calls_per_second = serializers.FloatField()
    last_seen = serializers.DateTimeField()


class OverlapShape(serializers.Serializer[Any]):
    id = serializers.CharField()
    state = serializers.ChoiceField([State.ENGAGED.value, State.RAMPING.value])
    reason = serializers.CharField()
    allow_percent = serializers.FloatField(min_value=0, max_value=100)


class RefusalShape(serializers.Serializer[Any]):
    action = serializers.ChoiceField(["engage", "release"], help_text="What it would refuse.")
    rule = serializers.CharField()
    detail = serializers.CharField()
    would_pass = serializers.CharField()


class CallingShape(serializers.Serializer[Any]):
    service = serializers.CharField()
    dependency = serializers.CharField(help_text="`canvas->core`.")
    criticality = serializers.ChoiceField(["critical", "high", "medium", "low"])


class DependentShape(serializers.Serializer[Any]):
    service = serializers.CharField(help_text="One that checks the switch.")
    callers_total = serializers.IntegerField()
    callers = CallingShape(many=True, help_text="At most 50, the most critical first.")


class PreviewShape(serializers.Serializer[Any]):
    """The blast radius: callers within the last hour, without clients that only poll."""

    switch = serializers.CharField()
    instances = CallerShape(many=True, help_text="The 200 busiest callers, tokens among them.")
    instances_total = serializers.IntegerField(help_text="All callers, tokens among them.")
    services = CallingServiceShape(many=True)
    tokens = serializers.IntegerField(
        help_text="Callers known by their token alone; they are of no service."
    )
    calls_per_second = serializers.FloatField(help_text="Of all callers together.")
    last_seen = serializers.DateTimeField(allow_null=True)
    overlapping = OverlapShape(
        many=True, help_text="Switches not released that stop part of the same traffic; at most 50."
    )
    rules = RefusalShape(
        many=True, help_text="Safety rules that would refuse to engage it, or to release it."
    )
    dependents = DependentShape(
        many=True, help_text="What calls the services that check it, as far as it is registered."
    )


class ActedShape(SwitchShape):
    """The switch after an action."""

    approval = ApprovalShape(required=False, help_text="What waits for a second person.")
    broke_glass = serializers.DictField(
        required=False, help_text="The rules that were overridden, and why."
    )
    review = ApprovalShape(
        required=False, help_text="What somebody else has to sign, if a rule was overridden."
    )
    notice = serializers.CharField(
        required=False, help_text="What is otherwise than was asked, such as an earlier expiry."
    )
    acknowledged_at = serializers.DateTimeField(
        required=False, help_text="When somebody said to know of it; of that action alone."
    )
    acknowledged_by = serializers.CharField(required=False)
    dry_run = serializers.BooleanField(required=False, help_text="True if nothing was done.")


class PendingShape(serializers.Serializer[Any]):
    """A release in progress: a started ramp, or a request to a second person."""

    ramp = RampShape(required=False, help_text="The ramp that has begun.")
    approval = ApprovalShape(required=False, help_text="What waits for a second person.")
    review = ApprovalShape(
        required=False, help_text="What somebody else has to sign, if a rule was overridden."
    )


class EpisodeShape(serializers.Serializer[Episode]):
    id = serializers.IntegerField()
    switch = serializers.CharField()
    state = serializers.ChoiceField(State.values)
    reason = serializers.CharField()
    evidence = serializers.DictField(allow_null=True)
    engaged_by = ActorShape()
    engaged_at = serializers.DateTimeField()
    engaged_version = serializers.IntegerField()
    expires_at = serializers.DateTimeField(allow_null=True)
    permanent = serializers.BooleanField()
    reconfirm_due_at = serializers.DateTimeField(
        allow_null=True, help_text="By when a permanent one has to be re-confirmed."
    )
    on_expiry = serializers.ChoiceField(OnExpiry.values)
    overdue = serializers.BooleanField()
    acknowledged_at = serializers.DateTimeField(allow_null=True)
    acknowledged_by = serializers.CharField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    ended_by = serializers.CharField(allow_null=True)
    ended_how = serializers.ChoiceField(Episode.End.values, allow_null=True)
    justification = serializers.CharField(allow_null=True)
    broke_glass = serializers.DictField(allow_null=True)

    def to_representation(self, episode: Episode) -> dict[str, Any]:
        return episode_resource(episode)


class SnapshotEntryShape(serializers.Serializer[Any]):
    id = serializers.CharField()
    scope = serializers.ChoiceField(SCOPES.names)
    key = serializers.CharField()
    state = serializers.ChoiceField([State.ENGAGED.value, State.RAMPING.value])
    allow_percent = serializers.FloatField()
    salt = serializers.CharField()
    reason = serializers.CharField()
    engaged_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    on_expiry = serializers.ChoiceField(OnExpiry.values)


class SnapshotShape(serializers.Serializer[Any]):
    schema = serializers.IntegerField()
    epoch = serializers.UUIDField()
    version = serializers.IntegerField()
    published_at = serializers.DateTimeField()
    poll_seconds = serializers.IntegerField()
    switches = SnapshotEntryShape(many=True)


class QuestionShape(serializers.Serializer[Any]):
    """The keys that a call checks, parsed by `switches.evaluate.read_question`."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        keys = {
            field: serializers.ListField(child=serializers.CharField(), required=False)
            for field in question_fields()
        }
        return {**keys, "targeting_key": serializers.CharField(required=False, allow_null=True)}


class DecisionShape(serializers.Serializer[Any]):
    allowed = serializers.BooleanField()
    switch = serializers.CharField(allow_null=True)
    reason = serializers.CharField(allow_null=True)
    version = serializers.IntegerField()
