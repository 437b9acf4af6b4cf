"""Page and API routes of trips."""

from django.urls import URLPattern, path

from controlplane.core.http.routes import both_forms
from switches.trips import api, views, webhooks

api_urlpatterns: list[URLPattern] = [
    *both_forms("switches/trip", api.TripView.as_view(), name="api-trip"),
    *both_forms("hooks/alertmanager", webhooks.AlertmanagerView.as_view(), name="api-alertmanager"),
    *both_forms("experiments/<str:key>/arms", api.ArmsView.as_view(), name="api-arms"),
    *both_forms("trips/", api.TripList.as_view(), name="api-trips"),
    *both_forms("trip-policies/", api.PoliciesView.as_view(), name="api-trip-policies"),
]
urlpatterns: list[URLPattern] = [
    path("trips/", views.trips_page, name="trips_page"),
    path("trips/<int:trip_id>/dismiss/", views.dismiss_trip, name="dismiss_trip"),
    path("trips/policies/new/", views.new_policy, name="new_trip_policy"),
    path("trips/policies/<slug:trigger>/", views.change_policy, name="change_trip_policy"),
    path("trips/policies/<slug:trigger>/remove/", views.remove_policy, name="remove_trip_policy"),
]
