"""API routes of switches."""

from django.urls import URLPattern

from controlplane.core.http.routes import View, both_forms
from switches.api import actions, snapshot, switches
from switches.drills import urls as drills
from switches.ramps import urls as ramps
from switches.report import urls as report
from switches.rules import urls as rules
from switches.trips import urls as trips

ONE = "switches/<str:scope>/<str:key>/"
ACTIONS: dict[str, View] = {
    "engage": actions.EngageView.as_view(),
    "extend": actions.ExtendView.as_view(),
    "acknowledge": actions.AcknowledgeEpisodeView.as_view(),
    "reconfirm": actions.ReconfirmView.as_view(),
    "release": actions.ReleaseView.as_view(),
    "undo": actions.UndoView.as_view(),
    "preview": switches.PreviewView.as_view(),
    "history": switches.EpisodeHistoryView.as_view(),
}

api_urlpatterns: list[URLPattern] = [
    # Before the switch routes, whose `<scope>/<key>/` also matches these paths.
    *trips.api_urlpatterns,
    *rules.api_urlpatterns,
    *report.api_urlpatterns,
    *ramps.api_urlpatterns,
    *drills.api_urlpatterns,
    *both_forms("switches/", switches.SwitchList.as_view(), name="api-switches"),
    *both_forms(ONE, switches.SwitchDetail.as_view(), name="api-switch"),
    *(
        pattern
        for action, view in ACTIONS.items()
        for pattern in both_forms(f"{ONE}{action}", view, name=f"api-{action}")
    ),
    *both_forms("snapshot", snapshot.SnapshotView.as_view(), name="api-snapshot"),
    *both_forms("check", snapshot.CheckView.as_view(), name="api-check"),
]
