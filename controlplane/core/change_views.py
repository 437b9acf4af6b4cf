"""Helpers for views that make a change by a form, as a page or in a dialog."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.http import HttpResponse, QueryDict

from .actors import Actor
from .clock import db_now
from .errors import Conflict, DomainError, InvalidInput, NotFound, Unavailable
from .http.permissions import actor_of
from .page_responses import PersonRequest, respond_done, show

CarryOut = Callable[[Actor, datetime], str]
"""Function that makes the change and returns a sentence about the new state."""


class ServiceForm(forms.Form):
    """A form that also shows the errors of the service function that makes the change."""

    renamed: Mapping[str, str] = {}  # Field names of the service → of the form.

    def add_service_errors(self, errors: Mapping[str, Sequence[str]]) -> None:
        """Show a service function's errors, given by field name, beside the fields of the form."""
        for field, texts in errors.items():
            name = self.renamed.get(field, field)
            self.add_error(name if name in self.fields else None, list(texts))

    def get_text(self, name: str) -> str:
        """Return a field's submitted text with LF line ends, or "" if it is empty."""
        return str(self.cleaned_data.get(name) or "").replace("\r\n", "\n")


def submitted_data(request: PersonRequest) -> QueryDict | None:
    """Return the submitted form data, or None if the form is shown for the first time."""
    return request.POST if request.method == "POST" else None


def attempt_change(
    form: ServiceForm,
    act: Callable[[], HttpResponse],
    refused: Callable[[DomainError], HttpResponse],
) -> HttpResponse | None:
    """If the form is valid, call `act`, which makes the change, and return the response of `act`.

    Returns None if the form has errors and must be shown again; an InvalidInput raised by `act` is
    added to them. Conflict, NotFound and Unavailable are passed to `refused`, whose response is
    returned.
    """
    if not form.is_valid():
        return None
    try:
        return act()
    except InvalidInput as error:
        form.add_service_errors(error.errors)
    except (Conflict, NotFound, Unavailable) as error:
        return refused(error)
    return None


def handle_change(
    request: PersonRequest,
    form: ServiceForm,
    carry_out: CarryOut,
    *,
    scope: str,
    template: str,
    context: Callable[[datetime], Mapping[str, Any]],
    back: str,
    refused: Callable[[DomainError], HttpResponse],
) -> HttpResponse:
    """If the form is valid, call `carry_out` and redirect to `back`; otherwise show the form.

    The template gets the form, `now` and `context(now)`. Raises :class:`Forbidden` if the person
    lacks the scope.
    """
    actor = actor_of(request)
    actor.require(scope)
    now = db_now()
    done = attempt_change(form, lambda: respond_done(request, carry_out(actor, now), back), refused)
    if done is not None:
        return done
    shown = {**context(now), "form": form, "now": now}
    return show(request, template, shown, status=422 if form.is_bound else 200)
