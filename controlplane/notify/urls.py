"""API paths and pages of notify."""

from django.urls import URLPattern

from .delivery import urls as deliveries
from .escalation import urls as escalations
from .interactions import urls as interactions
from .targets import urls as targets

api_urlpatterns: list[URLPattern] = [
    *deliveries.api_urlpatterns,
    *targets.api_urlpatterns,
    *escalations.api_urlpatterns,
]
urlpatterns: list[URLPattern] = [
    *interactions.urlpatterns,
    *deliveries.urlpatterns,
    *targets.urlpatterns,
]
