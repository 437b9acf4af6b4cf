"""API routes of ramps."""

from django.urls import URLPattern

from controlplane.core.http.routes import View, both_forms
from switches.ramps import api

ACTIONS: dict[str, View] = {
    "advance": api.RampAdvanceView.as_view(),
    "pause": api.RampPauseView.as_view(),
    "resume": api.RampResumeView.as_view(),
    "abort": api.RampAbortView.as_view(),
}

api_urlpatterns: list[URLPattern] = [
    *both_forms("ramps/", api.RampList.as_view(), name="api-ramps"),
    *both_forms("ramps/<int:ramp_id>/", api.RampDetail.as_view(), name="api-ramp"),
    *(
        pattern
        for action, view in ACTIONS.items()
        for pattern in both_forms(f"ramps/<int:ramp_id>/{action}", view, name=f"api-ramp-{action}")
    ),
]
