"""Paths of attention items."""

from django.urls import URLPattern, path

from controlplane.core.attention import api, views
from controlplane.core.http.routes import both_forms

api_urlpatterns: list[URLPattern] = [
    *both_forms("attention/", api.AttentionView.as_view(), name="api-attention"),
]
urlpatterns: list[URLPattern] = [
    path("attention/", views.attention_page, {"template": "core/attention.html"}, "attention_page"),
    path(
        "attention/rows/",
        views.attention_page,
        {"template": "core/_attention.html"},
        "attention_rows",
    ),
    path(
        "escalations/<int:escalation_id>/acknowledge/",
        views.acknowledge,
        name="escalation_acknowledge",
    ),
]
