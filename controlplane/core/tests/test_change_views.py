"""Responses of pages that change something by a form."""

import pytest
from django import forms
from django.http import HttpResponse

from controlplane.accounts.models.people import User
from controlplane.core.change_views import ServiceForm, handle_change
from controlplane.core.http.permissions import remember_actor
from controlplane.core.roles import Role

pytestmark = pytest.mark.django_db


class NoteForm(ServiceForm):
    note = forms.CharField(max_length=20)


def query_that_fails(_now):
    raise AssertionError("The change is committed: a failing query must not hide that.")


def test_saved_change_is_answered_without_the_queries_of_the_form(rf):
    request = rf.post("/")
    request.user, request.htmx = User(username="kim", role=Role.ADMIN), True
    remember_actor(request, request.user.as_actor())

    response = handle_change(
        request,
        NoteForm({"note": "kept"}),
        lambda actor, now: "Saved.",
        scope="switches:write",
        template="never.html",
        context=query_that_fails,
        back="/",
        refused=lambda error: HttpResponse(status=409),
    )

    assert response.status_code == 204
