"""What is changed from a page: a plain form at an address of its own, and the same in the dialog.

The form is shown until what it says can be carried out; a refusal keeps everything that was typed.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.http import HttpResponse, QueryDict

from .actors import Actor
from .clock import db_now
from .errors import Conflict, DomainError, InvalidInput, NotFound, Unavailable
from .http.permissions import actor_of
from .page_responses import PersonRequest, done, show

CarryOut = Callable[[Actor, datetime], str]
"""Does what the form asks, and says in a sentence what is so now."""


class RuleForm(forms.Form):
    """A form that a service has the last word on."""

    # Fields of the services that go by another name on the screen.
    renamed: Mapping[str, str] = {}

    def take(self, errors: Mapping[str, Sequence[str]]) -> None:
        """Show a rule's complaints beside the fields they are about."""
        for field, texts in errors.items():
            name = self.renamed.get(field, field)
            self.add_error(name if name in self.fields else None, list(texts))

    def given(self, name: str) -> str:
        """A field's text as typed, also while other fields are wrong."""
        return str(self.cleaned_data.get(name) or "").replace("\r\n", "\n")


def posted(request: PersonRequest) -> QueryDict | None:
    """What a form is to be filled with; None if it is asked for the first time."""
    return request.POST if request.method == "POST" else None


def attempted(
    form: RuleForm,
    act: Callable[[], HttpResponse],
    refused: Callable[[DomainError], HttpResponse],
) -> HttpResponse | None:
    """What a valid form leads to, or what stands in its way; None if the form is to be shown, with
    what the service has against it."""
    if not form.is_valid():
        return None
    try:
        return act()
    except InvalidInput as error:
        form.take(error.errors)
    except (Conflict, NotFound, Unavailable) as error:
        return refused(error)
    return None


def change(
    request: PersonRequest,
    form: RuleForm,
    carry_out: CarryOut,
    *,
    scope: str,
    template: str,
    context: Callable[[datetime], Mapping[str, Any]],
    back: str,
    refused: Callable[[DomainError], HttpResponse],
) -> HttpResponse:
    """Carry out what a valid form asks and go on to `back`, or show it: the template with the form,
    `now` and what `context` gives. Raises :class:`Forbidden` without the scope."""
    actor = actor_of(request)
    actor.require(scope)
    now = db_now()
    answer = attempted(form, lambda: done(request, carry_out(actor, now), back), refused)
    if answer is not None:
        return answer
    told = {**context(now), "form": form, "now": now}
    return show(request, template, told, status=422 if form.is_bound else 200)
