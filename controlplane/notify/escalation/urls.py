"""API paths of escalations."""

from django.urls import URLPattern

from controlplane.core.http.routes import both_forms

from . import api

api_urlpatterns: list[URLPattern] = [
    *both_forms("escalations/", api.EscalationList.as_view(), name="api-escalations"),
    *both_forms(
        "escalations/<int:escalation_id>/acknowledge",
        api.AcknowledgeView.as_view(),
        name="api-escalation-acknowledge",
    ),
]
