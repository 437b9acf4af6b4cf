"""Where Slack sends what was pressed."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
