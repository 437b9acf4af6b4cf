"""Paths of report."""

from django.urls import URLPattern

api_urlpatterns: list[URLPattern] = []
urlpatterns: list[URLPattern] = []
