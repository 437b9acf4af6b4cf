"""Paths of what waits for a person."""

from django.urls import URLPattern

api_urlpatterns: list[URLPattern] = []
urlpatterns: list[URLPattern] = []
