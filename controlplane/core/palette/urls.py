"""Paths of the palette."""

from django.urls import URLPattern, path

from controlplane.core.palette import views

urlpatterns: list[URLPattern] = [
    path("find/", views.find_page, name="find_page"),
    path("find/part/", views.find_part, name="find_part"),
]
