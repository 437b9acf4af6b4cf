"""Paths of deliveries."""

from django.urls import URLPattern, path

from controlplane.core.http.routes import both_forms

from . import api, views

api_urlpatterns: list[URLPattern] = [
    *both_forms("deliveries/", api.DeliveriesView.as_view(), name="api-deliveries"),
    *both_forms("deliveries/retry", api.RetryAllView.as_view(), name="api-deliveries-retry"),
    *both_forms("deliveries/<int:delivery_id>/", api.DeliveryView.as_view(), name="api-delivery"),
    *both_forms(
        "deliveries/<int:delivery_id>/retry", api.RetryView.as_view(), name="api-delivery-retry"
    ),
    *both_forms(
        "deliveries/<int:delivery_id>/discard",
        api.DiscardView.as_view(),
        name="api-delivery-discard",
    ),
]
urlpatterns: list[URLPattern] = [
    path("deliveries/", views.deliveries_page, name="deliveries_page"),
    path("deliveries/retry/", views.retry_all, name="deliveries_retry"),
    path("deliveries/<int:delivery_id>/", views.delivery_page, name="delivery_page"),
    path("deliveries/<int:delivery_id>/retry/", views.retry, name="delivery_retry"),
    path("deliveries/<int:delivery_id>/discard/", views.discard, name="delivery_discard"),
]
