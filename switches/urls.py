"""API routes of switches."""

from django.urls import URLPattern

from controlplane.core.http.routes import View, both_forms
from switches.api import actions, snapshot, switches
from switches.drills import urls as drills
from switches.environments.api import EnvironmentView
from switches.ramps import api as ramps
from switches.report import urls as report
from switches.rules import api as rules
from switches.trips import api as trips
from switches.trips import webhooks

SWITCH_ACTIONS: dict[str, View] = {
    "engage": actions.EngageView.as_view(),
    "extend": actions.ExtendView.as_view(),
    "acknowledge": actions.AcknowledgeEpisodeView.as_view(),
    "reconfirm": actions.ReconfirmView.as_view(),
    "release": actions.ReleaseView.as_view(),
    "undo": actions.UndoView.as_view(),
    "preview": switches.PreviewView.as_view(),
    "history": switches.EpisodeHistoryView.as_view(),
    "comments/": switches.EpisodeCommentsView.as_view(),
    "calls": switches.CallsView.as_view(),
}
RAMP_ACTIONS: dict[str, View] = {
    "advance": ramps.RampAdvanceView.as_view(),
    "pause": ramps.RampPauseView.as_view(),
    "resume": ramps.RampResumeView.as_view(),
    "abort": ramps.RampAbortView.as_view(),
}


def _action_routes(path: str, name: str, views: dict[str, View]) -> list[URLPattern]:
    return [
        pattern
        for action, view in views.items()
        for pattern in both_forms(f"{path}{action}", view, name=f"{name}-{action}")
    ]


api_urlpatterns: list[URLPattern] = [
    # Before the switch routes, whose `<scope>/<key>/` also matches these paths.
    *both_forms("switches/trip", trips.TripView.as_view(), name="api-trip"),
    *both_forms("hooks/alertmanager", webhooks.AlertmanagerView.as_view(), name="api-alertmanager"),
    *both_forms("experiments/<str:key>/arms", trips.ArmsView.as_view(), name="api-arms"),
    *both_forms("trips/", trips.TripList.as_view(), name="api-trips"),
    *both_forms("trip-policies/", trips.PoliciesView.as_view(), name="api-trip-policies"),
    *both_forms("rules/", rules.RuleList.as_view(), name="api-rules"),
    *both_forms("rules/<int:rule_id>/", rules.RuleDetail.as_view(), name="api-rule"),
    *both_forms("environment/", EnvironmentView.as_view(), name="api-environment"),
    *report.api_urlpatterns,
    *both_forms("ramps/", ramps.RampList.as_view(), name="api-ramps"),
    *both_forms("ramps/<int:ramp_id>/", ramps.RampDetail.as_view(), name="api-ramp"),
    *_action_routes("ramps/<int:ramp_id>/", "api-ramp", RAMP_ACTIONS),
    *drills.api_urlpatterns,
    *both_forms("switches/", switches.SwitchList.as_view(), name="api-switches"),
    *both_forms(
        "switches/<str:scope>/<str:key>/", switches.SwitchDetail.as_view(), name="api-switch"
    ),
    *_action_routes("switches/<str:scope>/<str:key>/", "api", SWITCH_ACTIONS),
    *both_forms("snapshot", snapshot.SnapshotView.as_view(), name="api-snapshot"),
    *both_forms("check", snapshot.CheckView.as_view(), name="api-check"),
]
