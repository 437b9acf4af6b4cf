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
        description="Any key may be engaged without registration; global has the key `all`.",
    ),
)


class EffectShape(serializers.Serializer[Any]):
    """The instances that applied the last published change, from their reports."""

    version = serializers.IntegerField()
    applied = serializers.IntegerField(help_text="Instances that report applying the change.")
    instances = serializers.IntegerField(help_text="Instances that reported within 30 seconds.")
    stragglers = serializers.ListField(
        child=serializers.CharField(),
        help_text="Instances that have not applied it: at most 20, the furthest behind first.",
    )
    stragglers_total = serializers.IntegerField()
    silent_total = serializers.IntegerField(
        help_text="Instances that stopped reporting within 5 minutes without applying it; "
        "counted neither as applied nor as stragglers."
    )
    measured = serializers.IntegerField(
        help_text="Instances known before the commit that applied the change; the delays are "
        "computed from them."
    )
    p50_ms = serializers.IntegerField(
        allow_null=True,
        help_text="Median delay from the commit, in milliseconds. Null if not measured: with "
        "hundreds of instances, a long list measures its newest changes only.",
    )
    p99_ms = serializers.IntegerField(
        allow_null=True, help_text="99th percentile of the delay, in milliseconds."
    )
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
    version = serializers.IntegerField(
        help_text="Version of the last published change; 0 if never published."
    )
    owner = serializers.CharField()
    description = serializers.CharField()
    runbook_url = serializers.CharField()
    last_proven_at = serializers.DateTimeField(allow_null=True)
    ramp = serializers.IntegerField(
        allow_null=True, help_text="Id of the ramp that is live or waits for approval."
    )
    effect = EffectShape(allow_null=True, help_text="Null if the switch was never published.")


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
    action = serializers.ChoiceField(["engage", "release"], help_text="The refused action.")
    rule = serializers.CharField()
    detail = serializers.CharField()
    would_pass = serializers.CharField()


class CallingShape(serializers.Serializer[Any]):
    service = serializers.CharField()
    dependency = serializers.CharField(help_text="Such as `canvas->core`.")
    criticality = serializers.ChoiceField(["critical", "high", "medium", "low"])


class DependentShape(serializers.Serializer[Any]):
    service = serializers.CharField(help_text="A service that checks the switch.")
    callers_total = serializers.IntegerField()
    callers = CallingShape(many=True, help_text="At most 50, the most critical first.")


class PreviewShape(serializers.Serializer[Any]):
    """The blast radius: callers within the last hour, without clients that only poll."""

    switch = serializers.CharField()
    instances = CallerShape(many=True, help_text="The 200 busiest callers, including API tokens.")
    instances_total = serializers.IntegerField(help_text="Number of callers, including API tokens.")
    services = CallingServiceShape(many=True)
    tokens = serializers.IntegerField(
        help_text="Number of callers known by their token only, without a service."
    )
    calls_per_second = serializers.FloatField(help_text="Sum over all callers.")
    last_seen = serializers.DateTimeField(allow_null=True)
    overlapping = OverlapShape(
        many=True, help_text="Unreleased switches that block part of the same traffic; at most 50."
    )
    rules = RefusalShape(
        many=True, help_text="Safety rules that would refuse to engage or release the switch."
    )
    dependents = DependentShape(
        many=True, help_text="Registered callers of the services that check the switch."
    )


class ActedShape(SwitchShape):
    """The switch after an action."""

    approval = ApprovalShape(required=False, help_text="Request that waits for a second person.")
    broke_glass = serializers.DictField(
        required=False, help_text="The overridden rules and the reason."
    )
    review = ApprovalShape(
        required=False, help_text="Review that another person must sign if a rule was overridden."
    )
    notice = serializers.CharField(
        required=False, help_text="Difference from the request, such as an earlier expiry."
    )
    acknowledged_at = serializers.DateTimeField(
        required=False,
        help_text="Time of the acknowledgment; only in the response to `acknowledge`.",
    )
    acknowledged_by = serializers.CharField(required=False)
    dry_run = serializers.BooleanField(required=False, help_text="True if this was a dry run.")


class PendingShape(serializers.Serializer[Any]):
    """A release in progress: a started ramp, or a request to a second person."""

    ramp = RampShape(required=False, help_text="The started ramp.")
    approval = ApprovalShape(required=False, help_text="Request that waits for a second person.")
    review = ApprovalShape(
        required=False, help_text="Review that another person must sign if a rule was overridden."
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
        allow_null=True, help_text="Deadline for re-confirming a permanent episode."
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
