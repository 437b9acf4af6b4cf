"""API resources of episodes and blast radii."""

from dataclasses import asdict
from typing import Any

from rest_framework import serializers

from controlplane.core.audit.api import ActorShape
from controlplane.core.http.resources import (
    OptionalTextField,
    PercentField,
    RateField,
    Resource,
    TimestampField,
)
from controlplane.core.instances.queries import Caller
from switches.blast import CallingService, Overlap, SwitchBlastRadius
from switches.models import Episode, OnExpiry, SwitchState
from switches.rules.evaluation import Refusal


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


class CallerShape(Resource[Caller]):
    id = serializers.CharField(help_text="`service/instance`, or `token:<name>`.")
    service = serializers.CharField()
    calls_per_second = RateField(help_text="Over the last minute.")
    blocked_per_second = RateField()
    last_seen = TimestampField()


class CallingServiceShape(Resource[CallingService]):
    service = serializers.CharField(source="id")
    instances = serializers.IntegerField()
    calls_per_second = RateField()
    last_seen = TimestampField()


class OverlapShape(Resource[Overlap]):
    id = serializers.CharField()
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
    instances = CallerShape(many=True, help_text="The 200 busiest callers, including API tokens.")
    instances_total = serializers.IntegerField(help_text="Number of callers, including API tokens.")
    services = CallingServiceShape(many=True)
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
