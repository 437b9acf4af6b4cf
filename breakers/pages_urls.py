"""URLs of the breaker pages."""

from django.urls import path

from .views import changes, dependency, live, overviews, policy

ONE = "breakers/<slug:caller>/<slug:callee>/"

urlpatterns = [
    path("degradation/", live.degradation_bar, name="degradation_part"),
    path("breakers/", overviews.breakers_page, name="breakers_page"),
    # These precede the pages of dependencies, whose pattern matches them too.
    path("breakers/map/", overviews.map_page, name="map_page"),
    path("breakers/fallbacks/", overviews.fallbacks_page, name="fallbacks_page"),
    path("breakers/infrastructure/", overviews.infrastructure_page, name="infrastructure_page"),
    path("breakers/new/", policy.new_dependency, name="dependency_new"),
    path(ONE, dependency.dependency_page, name="dependency_page"),
    path(f"{ONE}override/", changes.set_override, name="override"),
    path(f"{ONE}override/undo/", changes.undo_override, name="override_undo"),
    path(f"{ONE}override/status/", changes.override_status, name="override_status"),
    path(f"{ONE}override/remove/", changes.remove_override, name="override_remove"),
    path(f"{ONE}remove/", changes.remove_dependency, name="dependency_remove"),
    path(f"{ONE}edit/", policy.edit_policy, name="dependency_edit"),
]
