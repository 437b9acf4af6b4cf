"""Paths of targets, escalation steps and routes."""

from django.urls import URLPattern

api_urlpatterns: list[URLPattern] = []
urlpatterns: list[URLPattern] = []
