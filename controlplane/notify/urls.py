"""API paths and pages of notify."""

from typing import Any

from django.urls import URLPattern, path

from controlplane.core.http.routes import both_forms

from .delivery import api as deliveries_api
from .delivery import views as deliveries
from .escalation import api as escalations_api
from .interactions.views import receive_press
from .targets import api as targets_api
from .targets import contact_api, contact_views
from .targets import views as targets

_API: dict[str, tuple[Any, str]] = {
    "deliveries/": (deliveries_api.DeliveriesView, "api-deliveries"),
    "deliveries/retry": (deliveries_api.RetryAllView, "api-deliveries-retry"),
    "deliveries/<int:delivery_id>/": (deliveries_api.DeliveryView, "api-delivery"),
    "deliveries/<int:delivery_id>/retry": (deliveries_api.RetryView, "api-delivery-retry"),
    "deliveries/<int:delivery_id>/discard": (deliveries_api.DiscardView, "api-delivery-discard"),
    "targets/": (targets_api.TargetList, "api-targets"),
    "targets/<int:target_id>/": (targets_api.TargetView, "api-target"),
    "targets/<int:target_id>/test": (targets_api.TestTargetView, "api-target-test"),
    "teams/<slug:slug>/contacts/": (contact_api.ContactsView, "api-team-contacts"),
    "routes/": (targets_api.RouteList, "api-routes"),
    "routes/<int:route_id>/": (targets_api.RouteView, "api-route"),
    "escalations/": (escalations_api.EscalationList, "api-escalations"),
    "escalations/<int:escalation_id>/acknowledge": (
        escalations_api.AcknowledgeView,
        "api-escalation-acknowledge",
    ),
}
api_urlpatterns: list[URLPattern] = [
    pattern
    for route, (view, name) in _API.items()
    for pattern in both_forms(route, view.as_view(), name=name)
]
urlpatterns: list[URLPattern] = [
    *both_forms("slack/interactions", receive_press, name="slack_interactions"),
    path("deliveries/", deliveries.deliveries_page, name="deliveries_page"),
    path("deliveries/retry/", deliveries.retry_all_view, name="deliveries_retry"),
    path("deliveries/event/", deliveries.event_deliveries_page, name="event_deliveries"),
    path("deliveries/<int:delivery_id>/", deliveries.delivery_page, name="delivery_page"),
    path("deliveries/<int:delivery_id>/retry/", deliveries.retry_view, name="delivery_retry"),
    path("deliveries/<int:delivery_id>/discard/", deliveries.discard_view, name="delivery_discard"),
    path("targets/", targets.targets_page, name="targets_page"),
    path("targets/new/<str:kind>/", targets.new_target, name="target_new"),
    path("targets/<int:target_id>/change/", targets.change_target, name="target_change"),
    path("targets/<int:target_id>/remove/", targets.remove_target, name="target_remove"),
    path("targets/<int:target_id>/test/", targets.test_target, name="target_test"),
    path("teams/<slug:slug>/contacts/", contact_views.change_contacts, name="team_contacts"),
    path("routes/new/", targets.new_route, name="route_new"),
    path("routes/<int:route_id>/remove/", targets.remove_route, name="route_remove"),
]
