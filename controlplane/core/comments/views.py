"""The form that adds a comment, as a page or in a dialog."""

from datetime import datetime

from django import forms
from django.http import Http404, HttpResponse
from django.views.decorators.http import require_http_methods

from controlplane.core.actors import Actor
from controlplane.core.change_views import ServiceForm, handle_change, submitted_data
from controlplane.core.comments import services
from controlplane.core.errors import NotFound
from controlplane.core.page_responses import PersonRequest, show_refusal, signed_in
from controlplane.core.reasons import MAX_CHARACTERS


class CommentForm(ServiceForm):
    text = forms.CharField(max_length=MAX_CHARACTERS, required=False)


@signed_in
@require_http_methods(["GET", "POST"])
def comment_page(request: PersonRequest, kind: str, key: str) -> HttpResponse:
    try:
        known = services.find_kind(kind)
        commented = known.find(key)
    except NotFound as error:
        raise Http404 from error
    form = CommentForm(submitted_data(request))

    def carry_out(actor: Actor, now: datetime) -> str:
        services.add_comment(kind=kind, key=key, text=form.get_text("text"), actor=actor, now=now)
        return f"Comment on {commented.title} added."

    return handle_change(
        request,
        form,
        carry_out,
        scope=known.scope,
        template="core/comment.html",
        context=lambda _now: {"commented": commented},
        back=commented.path,
        refused=lambda error: show_refusal(request, "Not added", error, "switchboard"),
    )
