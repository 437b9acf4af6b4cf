"""Paths of deliveries."""

from django.urls import URLPattern

api_urlpatterns: list[URLPattern] = []
urlpatterns: list[URLPattern] = []
