"""The pages of SLOs."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
