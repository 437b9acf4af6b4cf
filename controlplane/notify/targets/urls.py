"""Paths of targets and routes."""

from django.urls import URLPattern, path

from controlplane.core.http.routes import both_forms

from . import api, views

api_urlpatterns: list[URLPattern] = [
    *both_forms("targets/", api.TargetList.as_view(), name="api-targets"),
    *both_forms("targets/<int:target_id>/", api.TargetView.as_view(), name="api-target"),
    *both_forms(
        "targets/<int:target_id>/test", api.TestTargetView.as_view(), name="api-target-test"
    ),
    *both_forms("routes/", api.RouteList.as_view(), name="api-routes"),
    *both_forms("routes/<int:route_id>/", api.RouteView.as_view(), name="api-route"),
]
urlpatterns: list[URLPattern] = [
    path("targets/", views.targets_page, name="targets_page"),
    path("targets/new/<str:kind>/", views.new, name="target_new"),
    path("targets/<int:target_id>/change/", views.change, name="target_change"),
    path("targets/<int:target_id>/remove/", views.remove, name="target_remove"),
    path("targets/<int:target_id>/test/", views.test, name="target_test"),
    path("routes/new/", views.new_route, name="route_new"),
    path("routes/<int:route_id>/remove/", views.remove_route, name="route_remove"),
]
