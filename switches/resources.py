"""API resources of switches and episodes."""

from dataclasses import asdict
from decimal import Decimal
from typing import Any

from rest_framework import serializers

from controlplane.core.audit.api import ActorShape
from controlplane.core.canonical import timestamp, timestamp_or_none
from controlplane.core.http.resources import PercentField, RateField, Resource, TimestampField
from controlplane.core.instances.queries import Caller
from switches.blast import CallingService, Overlap, SwitchBlastRadius
from switches.effect import SwitchEffect
from switches.models import Episode, OnExpiry, Switch, SwitchState
from switches.rules.evaluation import Refusal

FULLY_ALLOWED = 100


def switch_resource(
    switch: Switch, effect: SwitchEffect | None, ramp: int | None
) -> dict[str, Any]:
    """Return a switch's resource.

    `effect` is None only for a switch that was never published; `ramp` is the id of its live
    ramp.
    """
    episode = switch.episode
    return {
        "id": switch.pk,
        "scope": switch.scope,
        "key": switch.key,
        "state": switch.state.value,
        "allow_percent": _percent(episode),
        "reason": episode.reason if episode else None,
        "engaged_by": episode.engaged_by_name if episode else None,
        "engaged_at": timestamp(episode.engaged_at) if episode else None,
        "expires_at": timestamp_or_none(episode.expires_at) if episode else None,
        "on_expiry": episode.on_expiry if episode else None,
        "permanent": episode.permanent if episode else False,
        "overdue": episode.overdue if episode else False,
        "version": switch.version,
        "owner": switch.owner,
        "description": switch.description,
        "runbook_url": switch.runbook_url,
        "last_proven_at": timestamp_or_none(switch.last_proven_at),
        "ramp": ramp,
        "effect": effect_resource(effect) if effect else None,
    }


def effect_resource(effect: SwitchEffect) -> dict[str, Any]:
    return {
        "version": effect.version,
        "applied": effect.applied,
        "instances": effect.instances,
        "stragglers": [straggler.id for straggler in effect.stragglers],
        "stragglers_total": effect.stragglers_total,
        "silent_total": effect.silent_total,
        "measured": effect.measured,
        "p50_ms": effect.p50_ms,
        "p99_ms": effect.p99_ms,
        "requested_at": timestamp_or_none(effect.requested_at),
        "committed_at": timestamp_or_none(effect.committed_at),
    }


def _percent(episode: Episode | None) -> float | int:
    if episode is None:
        return FULLY_ALLOWED
    return plain(episode.allow_percent)


def plain(share: Decimal) -> float | int:
    """Return a share as a number, as an integer if it is whole: 12.5, but 25."""
    percent = float(share)
    return int(percent) if percent.is_integer() else percent


class BlankAsNullField(serializers.CharField):
    """A text that renders null if it is blank."""

    def to_representation(self, value: str) -> Any:
        return value or None


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
    acknowledged_by = BlankAsNullField(allow_null=True)
    ended_at = TimestampField(allow_null=True)
    ended_by = BlankAsNullField(allow_null=True)
    ended_how = BlankAsNullChoiceField(Episode.End.values, allow_null=True)
    justification = BlankAsNullField(allow_null=True)
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
