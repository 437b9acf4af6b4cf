"""URL of Slack's interaction requests."""

from django.urls import URLPattern

from controlplane.core.http.routes import both_forms

from .views import pressed

urlpatterns: list[URLPattern] = both_forms("slack/interactions", pressed, name="slack_interactions")
