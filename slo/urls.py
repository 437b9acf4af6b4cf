"""The SLOs' part of the API."""

from django.urls import URLPattern

api_urlpatterns: list[URLPattern] = []
