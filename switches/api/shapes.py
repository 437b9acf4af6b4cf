"""Response serializers of the switch API."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from controlplane.core.approvals.api import ApprovalShape
from controlplane.core.audit.api import ActorShape
from controlplane.core.http.resources import (
    OptionalTextField,
    PercentField,
    RateField,
    Resource,
    TimestampField,
)
from controlplane.core.instances.checked_keys import CallingService
from controlplane.core.instances.models import CheckCount
from controlplane.core.instances.queries import Caller
from switches.blast import SwitchBlastRadius
from switches.models import Episode, OnExpiry, Switch, SwitchState
from switches.ramps.resources import RampShape
from switches.rules.evaluation import Refusal
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
    """Counts of instances that have and have not applied the switch's last published change."""

    version = serializers.IntegerField()
    applied = serializers.IntegerField(help_text="Reporting instances that apply the change.")
    instances = serializers.IntegerField(
        help_text="Reporting instances: they reported within 30 s and did not stop cleanly."
    )
    stragglers = serializers.ListField(
        child=serializers.CharField(),
        help_text="Reporting instances that have not: at most 20, the furthest behind first.",
    )
    stragglers_total = serializers.IntegerField()
    silent_total = serializers.IntegerField(
        help_text="Instances that last reported 30 s to 5 minutes ago, without applying it; "
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
    state = serializers.ChoiceField(SwitchState.values)
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


class CallsShape(Resource[CheckCount]):
    """The calls of a switch in `seconds` from `start`, over all instances."""

    start = TimestampField(source="starts_at")
    seconds = serializers.IntegerField()
    allowed = serializers.IntegerField()
    blocked = serializers.IntegerField()


class BlankAsNullChoiceField(serializers.ChoiceField):
    """A choice that renders null if it is blank."""

    def to_representation(self, value: str) -> Any:
        return value or None


class EpisodeShape(Resource[Episode]):
    id = serializers.IntegerField(source="pk")
    switch = serializers.CharField(source="switch_id")
    state = serializers.ChoiceField(SwitchState.values, source="final_state")
    reason = serializers.CharField()
    evidence = serializers.DictField(allow_null=True)
    engaged_by = ActorShape(source="engager")
    engaged_at = TimestampField()
    engaged_version = serializers.IntegerField()
    expires_at = TimestampField(allow_null=True)
    permanent = serializers.BooleanField()
    reconfirm_due_at = TimestampField(
        allow_null=True, help_text="Deadline for re-confirming a permanent episode."
    )
    on_expiry = serializers.ChoiceField(OnExpiry.values)
    overdue = serializers.BooleanField()
    acknowledged_at = TimestampField(allow_null=True)
    acknowledged_by = OptionalTextField()
    ended_at = TimestampField(allow_null=True)
    ended_by = OptionalTextField()
    ended_how = BlankAsNullChoiceField(Episode.End.values, allow_null=True)
    justification = OptionalTextField()
    broke_glass = serializers.DictField(allow_null=True)


class PreviewInstanceShape(Resource[Caller]):
    id = serializers.CharField(help_text="`service/instance`, or `token:<name>`.")
    service = serializers.CharField()
    calls_per_second = RateField(help_text="Over the last minute.")
    blocked_per_second = RateField()
    last_seen = TimestampField()
    relay = OptionalTextField(help_text="Relay through which it was last heard.")


class PreviewServiceShape(Resource[CallingService]):
    service = serializers.CharField(source="id")
    instances = serializers.IntegerField()
    calls_per_second = RateField()
    last_seen = TimestampField()


class OverlapShape(Resource[Episode]):
    id = serializers.CharField(source="switch_id")
    state = serializers.ChoiceField([SwitchState.ENGAGED.value, SwitchState.RAMPING.value])
    reason = serializers.CharField()
    allow_percent = PercentField()


class RefusalShape(Resource[Any]):
    action = serializers.ChoiceField(["engage", "release"], help_text="The refused action.")
    rule = serializers.CharField()
    detail = serializers.CharField()
    would_pass = serializers.CharField()

    def to_representation(self, refused: tuple[str, Refusal]) -> dict[str, Any]:
        action, refusal = refused
        return {"action": action, **asdict(refusal)}


class BlastRadiusShape(Resource[SwitchBlastRadius]):
    switch = serializers.CharField()
    instances = PreviewInstanceShape(
        many=True, help_text="The 200 busiest callers, including API tokens."
    )
    instances_total = serializers.IntegerField(help_text="Number of callers, including API tokens.")
    services = PreviewServiceShape(many=True)
    tokens = serializers.IntegerField(
        help_text="Number of callers known by their token only, without a service."
    )
    calls_per_second = RateField(help_text="Sum over all callers.")
    last_seen = TimestampField(allow_null=True)
    overlapping = OverlapShape(
        many=True, help_text="Unreleased switches that block part of the same traffic; at most 50."
    )
    rules = RefusalShape(
        source="refusals",
        many=True,
        help_text="Safety rules that would refuse to engage or release the switch.",
    )


class DependentCallerShape(serializers.Serializer[Any]):
    service = serializers.CharField()
    dependency = serializers.CharField(help_text="Such as `canvas->core`.")
    criticality = serializers.ChoiceField(["critical", "high", "medium", "low"])
    was_reported = serializers.BooleanField(
        help_text="False if no report of the dependency's breaker is known."
    )


class DependentShape(serializers.Serializer[Any]):
    service = serializers.CharField(help_text="A service that checks the switch.")
    callers_total = serializers.IntegerField()
    callers = DependentCallerShape(
        many=True, help_text="At most 50: those that were reported first, then the most critical."
    )


class PreviewShape(BlastRadiusShape):
    """The blast radius: services and tokens that checked the switch within the last hour.

    Clients that only poll the snapshot are not counted.
    """

    dependents = DependentShape(
        many=True, help_text="Registered callers of the services that check the switch."
    )


class SecondPersonShape(serializers.Serializer[Any]):
    """The approval request and the break-glass review that a change may open."""

    approval = ApprovalShape(required=False, help_text="Request that waits for a second person.")
    review = ApprovalShape(
        required=False, help_text="Review that another person must sign if a rule was overridden."
    )


class SwitchActionShape(SwitchShape, SecondPersonShape):
    """The response to an action on a switch: the switch as it is afterwards."""

    broke_glass = serializers.DictField(
        required=False, help_text="The overridden rules and the reason."
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


class PendingReleaseShape(SecondPersonShape):
    """A release that is not finished: a started ramp, or an approval request to a second person."""

    ramp = RampShape(required=False, help_text="The started ramp.")


class SnapshotEntryShape(serializers.Serializer[Any]):
    id = serializers.CharField()
    scope = serializers.ChoiceField(SCOPES.names)
    key = serializers.CharField()
    state = serializers.ChoiceField([SwitchState.ENGAGED.value, SwitchState.RAMPING.value])
    allow_percent = serializers.FloatField()
    salt = serializers.CharField()
    reason = serializers.CharField()
    engaged_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    on_expiry = serializers.ChoiceField(OnExpiry.values)
    emergency = serializers.UUIDField(required=False)


class OrderIdsShape(serializers.Serializer[Any]):
    """The ids of emergency orders in force, and of those that ended in the last 24 hours."""

    open = serializers.ListField(child=serializers.UUIDField())
    closed = serializers.ListField(child=serializers.UUIDField())
    hidden = serializers.DictField(child=serializers.CharField(), required=False)


class SnapshotShape(serializers.Serializer[Any]):
    schema = serializers.IntegerField()
    epoch = serializers.UUIDField()
    version = serializers.IntegerField()
    published_at = serializers.DateTimeField()
    poll_seconds = serializers.IntegerField()
    switches = SnapshotEntryShape(many=True)
    emergency = OrderIdsShape()


class CheckBody(serializers.Serializer[Any]):
    """The body of a check request: switch keys by scope, and the call's targeting key."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        keys = {
            field: serializers.ListField(child=serializers.CharField(), required=False)
            for field in question_fields()
        }
        return {**keys, "targeting_key": serializers.CharField(required=False, allow_null=True)}


class CheckResultShape(serializers.Serializer[Any]):
    allowed = serializers.BooleanField()
    switch = serializers.CharField(allow_null=True)
    reason = serializers.CharField(allow_null=True)
    version = serializers.IntegerField()
