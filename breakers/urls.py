"""API URLs of breakers."""

from django.urls import URLPattern

from controlplane.core.http.routes import both_forms

from .api import board, catalog, registry

ONE = "<str:caller>/<str:callee>"

api_urlpatterns: list[URLPattern] = [
    *both_forms("dependencies/", registry.DependencyList.as_view(), name="api-dependencies"),
    *both_forms(f"dependencies/{ONE}/", registry.DependencyDetail.as_view(), name="api-dependency"),
    *both_forms(
        f"dependencies/{ONE}/override", registry.OverrideView.as_view(), name="api-override"
    ),
    *both_forms(
        f"dependencies/{ONE}/override/undo",
        registry.OverrideUndoView.as_view(),
        name="api-override-undo",
    ),
    *both_forms("breakers/", board.BreakerList.as_view(), name="api-breakers"),
    *both_forms(f"breakers/{ONE}/history", board.HistoryView.as_view(), name="api-breaker-history"),
    *both_forms("services/", catalog.ServiceList.as_view(), name="api-services"),
    *both_forms("services/<str:slug>/", catalog.ServiceDetail.as_view(), name="api-service"),
    *both_forms("channels/", catalog.ChannelList.as_view(), name="api-channels"),
]
