"""Forms of the switch pages; :mod:`switches.services` validates the fields."""

import math
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils import timezone

from controlplane.core import durations
from controlplane.core.canonical import timestamp
from controlplane.core.change_views import ServiceForm
from controlplane.core.errors import InvalidInput
from controlplane.core.reasons import MAX_CHARACTERS
from switches.expiry import MAX_DURATION, OFFERED_DURATIONS, PERMANENT
from switches.models import OnExpiry
from switches.scopes import GLOBAL, SCOPES, SEGMENT, default_on_expiry, split_id

DAY, AT = "24h", "at"
HOW_LONG = (*OFFERED_DURATIONS, AT, PERMANENT)
# Formats of a browser's date field.
LOCAL_FORMATS = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"]


class LocalTimeField(forms.DateTimeField):
    """A time in the person's zone; times that a clock change skips or repeats are invalid."""

    input_formats = LOCAL_FORMATS

    def to_python(self, value: Any) -> datetime | None:
        try:
            moment = super().to_python(value)
            return moment if moment is None else moment.astimezone(UTC)
        except (ValidationError, OverflowError) as error:  # Outside the calendar.
            zone = timezone.get_current_timezone_name()
            raise ValidationError(
                f"This is not a valid time in {zone}, or it is skipped or repeated by a clock"
                " change. Choose another time."
            ) from error


class _HowLongForm(ServiceForm):
    how_long = forms.ChoiceField(choices=[(choice, choice) for choice in HOW_LONG], initial=DAY)
    expires_at = LocalTimeField(required=False)

    renamed = {"expires_in": "how_long"}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        has_end = cleaned.get("expires_at") or "expires_at" in self.errors
        if cleaned.get("how_long") == AT and not has_end:
            self.add_error("expires_at", "Choose a time.")
        return cleaned


class _GlassForm(ServiceForm):
    """A form with optional fields to override safety rules (break-glass)."""

    renamed = {"break_glass.rule": "glass_rule", "break_glass.reason": "glass_reason"}

    glass_rule = forms.CharField(max_length=MAX_CHARACTERS * 2, required=False)
    glass_reason = forms.CharField(max_length=MAX_CHARACTERS * 2, required=False)

    def break_glass(self) -> dict[str, Any] | None:
        """Return the `break_glass` argument for engage or release; None to override no rule."""
        rules = [rule for rule in self.get_text("glass_rule").split("\n") if rule.strip()]
        return {"rule": rules, "reason": self.get_text("glass_reason")} if rules else None


class EngageForm(_HowLongForm, _GlassForm):
    """Fields of an engage; the key may be a full id, such as `feature:nl2sql`.

    A `suggested_reason` takes the place of an empty reason.
    """

    renamed = {**_HowLongForm.renamed, **_GlassForm.renamed}

    scope = forms.ChoiceField(choices=SCOPES.choices, initial=SEGMENT.name)
    key = forms.CharField(max_length=200, required=False)
    reason = forms.CharField(max_length=MAX_CHARACTERS * 2, required=False)
    on_expiry = forms.ChoiceField(choices=[("", ""), *OnExpiry.choices], required=False)
    confirm = forms.CharField(max_length=200, required=False)

    def __init__(self, data: QueryDict | None = None, **more: Any) -> None:
        if data and not data.get("reason", "").strip():
            data = data.copy()
            data["reason"] = data.get("suggested_reason", "")
        if data and (found := split_id(data.get("key", ""))):
            # Split a full id; an old scope's default policy becomes the new scope's default.
            has_default = data.get("on_expiry") == default_on_expiry(data.get("scope", ""))
            data = data.copy()
            data["scope"], data["key"] = found
            if has_default:
                data["on_expiry"] = default_on_expiry(found[0])
        super().__init__(data, **more)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if cleaned.get("scope") == GLOBAL.name:
            cleaned["key"] = GLOBAL.only_key
            typed = cleaned.get("confirm", "").strip().casefold()
            if typed not in {settings.ENVIRONMENT_NAME.casefold(), GLOBAL.name}:
                self.add_error(
                    "confirm", f"Type {settings.ENVIRONMENT_NAME} or global to stop everything."
                )
        return cleaned

    def service_arguments(self) -> dict[str, Any]:
        how_long = self.get_text("how_long") or DAY
        until = self.cleaned_data.get("expires_at")
        policy = self.get_text("on_expiry")
        # The form always sends a policy. Omit the scope's default, so that a rule may replace it.
        is_default_policy = policy == default_on_expiry(self.get_text("scope"))
        return {
            "scope": self.get_text("scope"),
            "key": self.get_text("key").strip(),
            "reason": self.get_text("reason"),
            "expires_in": how_long if how_long != AT else None if until else DAY,
            "expires_at": timestamp(until) if how_long == AT and until else None,
            "on_expiry": None if is_default_policy else policy or None,
            "break_glass": self.break_glass(),
        }


class ExtendForm(_HowLongForm):
    """Fields of an extension, whose offered durations begin at the present expiry.

    `present` is the expiry that the form shows; the form is rejected if it has changed since.
    """

    reason = forms.CharField(max_length=MAX_CHARACTERS * 2, required=False)
    present = forms.CharField(max_length=40, required=False)

    def service_arguments(self, now: datetime, present: datetime | None) -> dict[str, Any]:
        """Return the arguments to extend a switch that expires at `present`.

        A chosen time becomes seconds from now.
        """
        how_long, until = self.get_text("how_long") or DAY, self.cleaned_data.get("expires_at")
        if how_long == AT and until:
            if until <= now:
                raise InvalidInput({"expires_at": ["Choose a time in the future."]})
        elif how_long in OFFERED_DURATIONS:
            shown = self.get_text("present")
            if shown and (present is None or shown != timestamp(present)):
                message = "Its expiry changed in the meantime. Check the new times and try again."
                raise InvalidInput({"expires_in": [message]})
            until = max(present or now, now) + durations.parse(how_long)
        if until and until > now + MAX_DURATION:
            message = f"Must be at most {MAX_DURATION.days} days from now."
            raise InvalidInput({"expires_at" if how_long == AT else "expires_in": [message]})
        if until:
            how_long = f"{math.ceil((until - now).total_seconds())}s"
        return {"expires_in": how_long, "reason": self.get_text("reason")}


class ReleaseForm(_GlassForm):
    """Fields of a release, except the plan, which :mod:`switches.ramps.plan_editor` reads.

    `ask` is set if the form said that the owner has to approve. `glass_mode` is the mode of a
    release by break-glass, whose button sends the rules.
    """

    justification = forms.CharField(max_length=MAX_CHARACTERS * 2, required=False)
    mode = forms.CharField(max_length=20, required=False)
    ask = forms.CharField(max_length=1, required=False)
    glass_mode = forms.CharField(max_length=20, required=False)


class ReasonForm(ServiceForm):
    reason = forms.CharField(max_length=MAX_CHARACTERS * 2, required=False)


class AcknowledgeForm(ServiceForm):
    comment = forms.CharField(max_length=MAX_CHARACTERS, required=False)


class DescribeForm(ServiceForm):
    owner = forms.CharField(max_length=400, required=False)
    description = forms.CharField(max_length=8000, required=False)
    runbook_url = forms.CharField(max_length=400, required=False)
