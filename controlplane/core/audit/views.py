"""Audit page: the trail with filters and differences, and its verification."""

from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from controlplane.core.audit import search, services
from controlplane.core.audit.differences import compare_texts
from controlplane.core.audit.models import AuditEntry, match_actor
from controlplane.core.clock import db_now
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, show, signed_in
from controlplane.core.roles import Power

PAGE_SIZE = 50
# Verifying this many rows takes about a second; longer trails are verified in the shell.
MAX_TO_VERIFY_HERE = 20_000


CONDITIONS: Mapping[str, Callable[[Any], Q]] = {
    # Longer texts are searched by segment.
    "q": lambda text: (
        search.match_text(text) & search.match_newest() if search.is_short(text) else Q()
    ),
    "actor": match_actor,
    "action": lambda name: Q(action=name) if "." in name else Q(action__startswith=f"{name}."),
    "target": lambda target: Q(target=target),
    "since": lambda at: Q(at__gte=at),
    "until": lambda at: Q(at__lte=at),
    "before": lambda entry_id: Q(pk__lt=entry_id),
}
"""Condition of each filter of the audit page, from its value."""


class AuditFilterForm(forms.Form):
    """Filters of the audit page; times are in the person's time zone."""

    q = forms.CharField(required=False, max_length=200)
    actor = forms.CharField(required=False, max_length=200)
    action = forms.CharField(required=False, max_length=64)
    target = forms.CharField(required=False, max_length=200)
    since = forms.DateTimeField(required=False)
    until = forms.DateTimeField(required=False)
    before = forms.IntegerField(required=False, min_value=1, max_value=2**62)

    def build_condition(self) -> Q:
        """Return the query condition of the valid filters; invalid filters are ignored."""
        self.is_valid()
        condition = Q()
        for name, match in CONDITIONS.items():
            if value := self.cleaned_data.get(name):
                condition &= match(value)
        return condition

    def fetch_entries(self, limit: int) -> list[AuditEntry]:
        """Return the newest `limit` entries that match the filters."""
        rows = AuditEntry.objects.filter(self.build_condition()).order_by("-id")
        text, before = self.cleaned_data.get("q"), self.cleaned_data.get("before")
        if not text or search.is_short(text):
            return list(rows[:limit])
        sql, params = search.build_segment_query(
            rows, text, ascending=False, position=before, limit=limit
        )
        return list(AuditEntry.objects.raw(sql, params))

    def searched_newest(self) -> int | None:
        """Return the number of newest rows to which a short text's search is limited, else None."""
        text = self.cleaned_data.get("q")
        return search.MAX_SCANNED if text and search.is_short(text) else None

    def list_active(self) -> list[tuple[str, str]]:
        """Return the name of each filter in use, and its value as the user typed it."""
        names = [name for name in self.fields if name != "before"]
        return [(name, self.data[name]) for name in names if self.data.get(name)]


@signed_in
@require_GET
def audit_page(request: PersonRequest) -> HttpResponse:
    """Show a page of the trail, newest first: the entries with an id below `?before=`, if given."""
    filters = AuditFilterForm(request.GET)
    shown = filters.fetch_entries(PAGE_SIZE + 1)
    entries = shown[:PAGE_SIZE]
    context = {
        "filters": filters,
        "actions": services.list_actions(),
        "rows": [(entry, compare_texts(entry.before, entry.after)) for entry in entries],
        "older": entries[-1].pk if len(shown) > PAGE_SIZE else None,
        "newest": not request.GET.get("before"),
        "narrowed": filters.list_active(),
        "searched_newest": filters.searched_newest(),
        "now": timezone.now(),
    }
    return render(request, "core/audit.html", context)


@signed_in
@require_POST
def verify(request: PersonRequest) -> HttpResponse:
    """Verify the whole chain, or show the shell command if the chain is too long for a request."""
    actor_of(request).require_power(Power.ADMINISTER)
    last = AuditEntry.objects.order_by("-id").values_list("pk", flat=True).first() or 0
    too_long = last > MAX_TO_VERIFY_HERE
    context = {"verdict": None if too_long else services.verify(), "rows": last, "now": db_now()}
    return show(request, "core/audit_verification.html", context)
