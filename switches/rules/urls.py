"""Paths of rules."""

from django.urls import URLPattern

api_urlpatterns: list[URLPattern] = []
urlpatterns: list[URLPattern] = []
