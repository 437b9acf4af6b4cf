"""Serializers of trips: request bodies, validation and OpenAPI responses."""

from fractions import Fraction
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.core.http.fields import Body, EmptyBody, Filters, Text
from controlplane.core.http.resources import Resource
from switches.api.shapes import SwitchShape
from switches.models import Trip, TripPolicy
from switches.scopes import SCOPES
from switches.trips import srm, texts

MAX_ARMS = 100
MAX_COUNT = 10**15
MIN_SHARE, MAX_WEIGHT = Fraction(1, 10**9), 10**9


class TripBody(EmptyBody):
    switch = Text(help_text="Switch id such as `experiment:ranking-v2`.")
    source = Text(  # type: ignore[assignment]  # DRF's Field has such an attribute
        help_text="Source that the policies match, such as `latency-monitor` or `srm`."
    )
    fingerprint = Text(help_text="Identifier of the alert, equal for its repeats.")
    reason = Text(required=False, help_text="What is wrong; required unless resolved.")
    evidence = serializers.DictField(required=False, help_text="Any JSON object, up to 32 KiB.")
    expires_in = Text(required=False, help_text="Duration, capped by the policy. Default: `1h`.")
    status = serializers.ChoiceField(
        ["firing", "resolved"],
        required=False,
        help_text="`resolved` ends the alert; the switch stays engaged.",
    )


@extend_schema_field({"type": "array", "items": {"type": "object"}})
class _Alerts(serializers.JSONField):
    """Field of raw alerts, which :mod:`switches.trips.alertmanager` validates faster than DRF."""


class AlertmanagerNotificationShape(EmptyBody):
    """A notification of Alertmanager's webhook, version 4."""

    ignores_unknown = True
    version = serializers.JSONField(required=False)
    groupKey = serializers.JSONField(required=False)
    truncatedAlerts = serializers.JSONField(required=False)
    status = serializers.JSONField(required=False)
    receiver = serializers.JSONField(required=False)
    groupLabels = serializers.JSONField(required=False)
    commonLabels = serializers.JSONField(required=False)
    commonAnnotations = serializers.JSONField(required=False)
    externalURL = serializers.JSONField(required=False)
    alerts = _Alerts()


class ArmBody(Body):
    expected = serializers.JSONField(help_text="Planned share or weight of the arm.")
    count = serializers.JSONField(help_text=f"Number of units in the arm: 0 to {MAX_COUNT:,}.")

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise serializers.ValidationError("Must be an object with expected and count.")
        return super().to_internal_value(data)

    def validate_expected(self, value: Any) -> Fraction:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise serializers.ValidationError("Must be a number.")
        share = Fraction(str(value))
        if not MIN_SHARE <= share <= MAX_WEIGHT:
            raise serializers.ValidationError("Must be above zero, and at most 1,000,000,000.")
        return share

    def validate_count(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise serializers.ValidationError("Must be a whole number.")
        if not 0 <= value <= MAX_COUNT:
            raise serializers.ValidationError(f"Must be from 0 to {MAX_COUNT:,}.")
        return value


class ArmsBody(EmptyBody):
    arms = serializers.DictField(child=ArmBody(), help_text="At least two arms, by name.")
    alpha = serializers.JSONField(
        required=False, help_text=f"Significance level. Default: {srm.ALPHA}."
    )
    expires_in = Text(required=False, help_text="Duration of a trip. Default: `24h`.")

    def validate_arms(self, arms: dict[str, dict[str, Any]]) -> list[srm.Arm]:
        if not 2 <= len(arms) <= MAX_ARMS:
            raise serializers.ValidationError(f"Between 2 and {MAX_ARMS} arms.")
        if any(not name.strip() or len(name) > 120 for name in arms):
            raise serializers.ValidationError("An arm's name has 1 to 120 characters.")
        if wrong := srm.describe_share_error([arm["expected"] for arm in arms.values()]):
            raise serializers.ValidationError(wrong)
        return [srm.Arm(name, arm["expected"], arm["count"]) for name, arm in arms.items()]

    def validate_expires_in(self, expires_in: str) -> str:
        try:
            return texts.cap_expiry(expires_in, texts.NO_CAP_MINUTES)
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from error

    def validate_alpha(self, alpha: Any) -> float:
        if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 1:
            raise serializers.ValidationError("Must be a number between 0 and 1.")
        return float(alpha)


class PoliciesBody(EmptyBody):
    """All trip policies in order, in the field `policies`, or `results` as the API returns them."""

    policies = serializers.ListField(child=serializers.DictField(), required=False)
    results = serializers.ListField(child=serializers.DictField(), required=False)

    def validate(self, fields: dict[str, Any]) -> dict[str, Any]:
        if ("policies" in fields) == ("results" in fields):
            raise serializers.ValidationError({"policies": "Send the whole table."})
        return {**fields, "policies": fields.pop("policies", None) or fields.pop("results", [])}


class TripFilters(Filters):
    switch = serializers.CharField(required=False, max_length=131)
    outcome = serializers.ChoiceField(Trip.Outcome.values, required=False)
    fingerprint = serializers.CharField(required=False, max_length=200)


class TripResultShape(serializers.Serializer[Any]):
    tripped = serializers.BooleanField(help_text="True if this request engaged the switch.")
    why = serializers.CharField()
    trip = serializers.IntegerField(allow_null=True, help_text="Id of the trip.")
    switch = SwitchShape()
    dry_run = serializers.BooleanField(required=False)


class AlertResultShape(serializers.Serializer[Any]):
    fingerprint = serializers.CharField()
    switch = serializers.CharField(allow_null=True)
    tripped = serializers.BooleanField()
    why = serializers.CharField()
    trip = serializers.IntegerField(allow_null=True)


class AlertmanagerResultShape(serializers.Serializer[Any]):
    results = AlertResultShape(many=True)
    truncated = serializers.IntegerField(help_text="Number of alerts that Alertmanager truncated.")
    left_out = serializers.IntegerField(
        help_text="Number of requests beyond the limit per message, which are escalated to people."
    )
    dry_run = serializers.BooleanField(required=False)


class ArmShape(Resource[srm.ArmResult]):
    count = serializers.IntegerField()
    share = serializers.FloatField(help_text="Planned share, from 0 to 1.")
    expected = serializers.FloatField(help_text="Expected count for the planned share.")


class ArmTestShape(Resource[srm.SrmResult]):
    verdict = serializers.ChoiceField([srm.OK, srm.MISMATCH, srm.INSUFFICIENT])
    test = serializers.ChoiceField(
        [srm.CHI_SQUARE, srm.BINOMIAL],
        help_text="Test of `p_value`: binomial if an arm's expected count is below five.",
    )
    srm = serializers.BooleanField(source="mismatch", help_text="True for a mismatch.")
    p_value = serializers.FloatField()
    chi_square = serializers.FloatField()
    degrees_of_freedom = serializers.IntegerField()
    alpha = serializers.FloatField()
    total = serializers.IntegerField()
    arms = serializers.DictField(child=ArmShape())


class ArmsShape(ArmTestShape, TripResultShape):
    pass


class PolicyShape(serializers.Serializer[Any]):
    trigger = serializers.CharField()
    title = serializers.CharField()
    sources = serializers.ListField(child=serializers.CharField())
    scopes = serializers.ListField(child=serializers.ChoiceField(SCOPES.names))
    gate = serializers.ChoiceField(TripPolicy.Gate.values)
    response = serializers.CharField()
    budget_per_hour = serializers.IntegerField()
    longest_minutes = serializers.IntegerField()


class PoliciesShape(serializers.Serializer[Any]):
    next = serializers.CharField(allow_null=True)
    previous = serializers.CharField(allow_null=True)
    results = PolicyShape(many=True)
    dry_run = serializers.BooleanField(required=False)
