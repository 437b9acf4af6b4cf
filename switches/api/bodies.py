"""Request bodies of the switch API; :mod:`switches.services` validates their values."""

from rest_framework import serializers

from controlplane.core.http.fields import EmptyBody, Filters, Moment, Text
from controlplane.core.team_filter import TEAM_HELP
from switches.models import OnExpiry, SwitchState
from switches.rules.break_glass import OWNERSHIP, TWO_PERSON
from switches.scopes import SCOPES
from switches.services.release import MODES


class EngageBody(EmptyBody):
    reason = Text(help_text="What is wrong, and where or why: at least 10 characters, not vague.")
    expires_in = Text(required=False, help_text="`24h`, `7d`, … up to 30 days, or `permanent`.")
    expires_at = Text(required=False, help_text="An RFC 3339 time, or `permanent`.")
    on_expiry = Text(required=False, help_text=f"One of {', '.join(OnExpiry.values)}.")
    evidence = serializers.DictField(required=False, help_text="Any JSON object, up to 32 KiB.")
    break_glass = serializers.DictField(
        required=False,
        help_text='`{"rule", "reason"}`: the safety rule, or a list of them, to override now. '
        "The switch is then engaged for at most 4 hours, and another person must review it.",
    )


class ExtendBody(EmptyBody):
    expires_in = Text(
        help_text="Duration from now that ends after the current expiry, or `permanent`."
    )
    reason = Text()


class AcknowledgeSwitchBody(EmptyBody):
    comment = Text(required=False, max_length=2000)


class ReconfirmBody(EmptyBody):
    reason = Text(help_text="Why the switch must stay engaged.")


class ReleaseBody(EmptyBody):
    justification = Text(help_text="Why traffic can be allowed again.")
    mode = Text(required=False, help_text=f"One of {', '.join(MODES)}.")
    plan = serializers.JSONField(
        required=False,
        help_text='`[{"percent": 5, "dwell_seconds": 300, "gates": [{"type": "external", "gate": '
        '"smoke"}]}, …]`: increasing shares up to 100. Default: 5, 25 and 100 %, 5 minutes each.',
    )
    max_hold_seconds = serializers.JSONField(
        required=False,
        help_text="Maximum wait for data of steps without `max_hold_seconds`. Default: 1 hour.",
    )
    break_glass = serializers.DictField(
        required=False,
        help_text='`{"rule", "reason"}`: the safety rules that a signed-in approver overrides '
        f"to release immediately: a name, `{TWO_PERSON}`, `{OWNERSHIP}`, or a list.",
    )
    ask = serializers.BooleanField(
        required=False,
        help_text="Request the owner's approval instead, also of a release that you may not make.",
    )


class UndoBody(EmptyBody):
    pass


class DescribeSwitchBody(EmptyBody):
    owner = Text(required=False)
    description = Text(required=False)
    runbook_url = Text(required=False)


class SwitchFilters(Filters):
    scope = serializers.ChoiceField(SCOPES.names, required=False)
    state = serializers.ChoiceField(SwitchState.values, required=False)
    overdue = serializers.BooleanField(required=False)
    q = serializers.CharField(
        required=False, max_length=200, help_text="Text in the id, owner or description."
    )
    team = serializers.CharField(required=False, max_length=60, help_text=TEAM_HELP)


class CallFilters(Filters):
    by = serializers.ChoiceField(
        ("minute", "hour"),
        required=False,
        help_text="Resolution; `minute` by default. Minutes are kept for two days.",
    )
    since = Moment(required=False, help_text="Start, inclusive.")
    until = Moment(required=False, help_text="End, exclusive.")
