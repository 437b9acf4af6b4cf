"""Request bodies and query filters of the API; `breakers.services` validates the values."""

from rest_framework import serializers

from breakers.api.shapes import (
    STATES,
    BreakerSection,
    BudgetSection,
    BulkheadSection,
    FallbackSection,
    RetrySection,
    Routes,
    SavedDependencyShape,
    ServiceShape,
)
from breakers.models import Override, Service
from breakers.policies.parameters import CRITICALITIES
from controlplane.core.http.fields import EmptyBody, Filters, Text
from controlplane.core.team_filter import TEAM_HELP


class DependencyBody(EmptyBody):
    """The policy of a dependency. A missing field gets its default.

    If a section is missing or null, the settings in the calling service's code apply.
    """

    response_shape = SavedDependencyShape

    protocol = Text(required=False)
    timeout_ms = serializers.JSONField(
        required=False, help_text="Timeout of one attempt in milliseconds."
    )
    routes = Routes(required=False)
    criticality = Text(required=False, help_text=f"One of {', '.join(CRITICALITIES)}.")
    mode = Text(required=False, help_text="`sync` or `async`.")
    notes = Text(required=False)
    breaker = BreakerSection(required=False)
    retry = RetrySection(required=False)
    bulkhead = BulkheadSection(required=False)
    fallback = FallbackSection(required=False)
    budget = BudgetSection(required=False)
    runbook_url = Text(required=False)
    owner = Text(required=False)
    managed_by = Text(required=False)
    on_outage = serializers.JSONField(
        required=False,
        help_text='`{"action": "trip", "switch": "segment:x", "open_share": 0.5, "for_seconds": '
        '30, "expires_in": "1h"}`; the action `fallback` takes no switch.',
    )
    reason = Text(required=False, max_length=2000, help_text="Recorded in the audit trail.")


class NewDependencyBody(DependencyBody):
    caller = Text()
    callee = Text()


class PutDependencyBody(DependencyBody):
    caller = Text(required=False, help_text="Optional; must equal the value in the path.")
    callee = Text(required=False, help_text="Optional; must equal the value in the path.")


class RemovalBody(EmptyBody):
    reason = Text(required=False, max_length=2000)


class OverrideBody(EmptyBody):
    mode = Text(help_text=f"One of {', '.join(Override.Mode.values)}.")
    reason = Text(help_text="What you saw and where, at least 10 characters, not vague.")
    expires_in = Text(
        required=False, help_text="A duration from `1s` to `30d`; optional for `reset`."
    )


class OverrideUndoBody(EmptyBody):
    pass


class ServiceBody(EmptyBody):
    response_shape = ServiceShape

    name = Text(required=False)
    kind = Text(required=False, help_text=f"One of {', '.join(Service.Kind.values)}.")
    owner = Text(required=False)
    runbook_url = Text(required=False)
    notes = Text(required=False)
    level = serializers.JSONField(
        required=False, help_text="Degradation level while the service is down: 1, 2 or 3."
    )
    loses = serializers.JSONField(required=False, help_text="List of functions that are lost.")
    keeps = serializers.JSONField(required=False, help_text="List of functions that still work.")
    used_by = serializers.JSONField(required=False, help_text="List of slugs.")
    failure_mode = Text(required=False)
    fallback = Text(required=False)
    impact = Text(required=False)
    retry = serializers.JSONField(required=False)
    probe_url = Text(required=False, help_text="tcp://host:port, http://… or https://….")


class NewServiceBody(ServiceBody):
    slug = Text()


class DependencyFilters(Filters):
    caller = serializers.CharField(required=False, max_length=60)
    callee = serializers.CharField(required=False, max_length=60)
    criticality = serializers.ChoiceField(CRITICALITIES, required=False)
    q = serializers.CharField(
        required=False, max_length=200, help_text="Text contained in caller, callee or owner."
    )
    team = serializers.CharField(required=False, max_length=60, help_text=TEAM_HELP)


class BreakerFilters(DependencyFilters):
    state = serializers.ChoiceField(STATES, required=False)


class ServiceFilters(Filters):
    kind = serializers.ChoiceField(Service.Kind.values, required=False)
    q = serializers.CharField(
        required=False, max_length=200, help_text="Text contained in slug, name or owner."
    )


class HistoryFilters(Filters):
    minutes = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=1440,
        help_text="Number of recent minutes to include; 60 by default.",
    )
