"""The pages of breakers."""

from django.urls import path

from .views import board, changes, coverage, dependency, infrastructure, live, map, policy

ONE = "breakers/<slug:caller>/<slug:callee>/"

urlpatterns = [
    path("degradation/", live.degradation_bar, name="degradation_part"),
    path("breakers/", board.breakers_page, name="breakers_page"),
    # Before the dependencies: no service's slug has a callee of these names by accident.
    path("breakers/map/", map.map_page, name="map_page"),
    path("breakers/fallbacks/", coverage.fallbacks_page, name="fallbacks_page"),
    path(
        "breakers/infrastructure/", infrastructure.infrastructure_page, name="infrastructure_page"
    ),
    path("breakers/new/", policy.new_dependency, name="dependency_new"),
    path(ONE, dependency.dependency_page, name="dependency_page"),
    path(f"{ONE}override/", changes.override, name="override"),
    path(f"{ONE}override/remove/", changes.remove_override, name="override_remove"),
    path(f"{ONE}remove/", changes.remove, name="dependency_remove"),
    path(f"{ONE}edit/", policy.edit_policy, name="dependency_edit"),
]
