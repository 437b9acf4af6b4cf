"""URL paths of runbooks."""

from django.urls import path

from controlplane.core.runbooks import views

urlpatterns = [
    path("runbooks/", views.runbooks_page, name="runbooks_page"),
    path("runbooks/<slug:slug>/", views.runbook_page, name="runbook_page"),
]
