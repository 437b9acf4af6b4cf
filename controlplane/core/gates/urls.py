from django.urls import URLPattern

from controlplane.core.http.routes import both_forms

from . import api

api_urlpatterns: list[URLPattern] = [
    *both_forms("gates/", api.GateList.as_view(), name="api-gates"),
    *both_forms("gates/<str:name>", api.GateView.as_view(), name="api-gate"),
]
