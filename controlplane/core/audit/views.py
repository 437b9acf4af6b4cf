"""The audit page: the trail with filters, each row's difference, and the proof that it is whole."""

from typing import Any

from django import forms
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from controlplane.core.audit import search, services
from controlplane.core.audit.differences import compare_texts
from controlplane.core.audit.models import AuditEntry, by_actor
from controlplane.core.clock import db_now
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, show, signed_in
from controlplane.core.roles import Power

PAGE_SIZE = 50
# Checking takes about a second for this many rows; beyond, the shell is the place for it.
MAX_TO_VERIFY_HERE = 20_000


class AuditFilters(forms.Form):
    """Filters of the audit trail; times are in the person's time zone."""

    q = forms.CharField(required=False, max_length=200)
    actor = forms.CharField(required=False, max_length=200)
    action = forms.CharField(required=False, max_length=64)
    target = forms.CharField(required=False, max_length=200)
    since = forms.DateTimeField(required=False)
    until = forms.DateTimeField(required=False)
    before = forms.IntegerField(required=False, min_value=1, max_value=2**62)

    def condition(self) -> Q:
        """Return the condition of the filters; an invalid filter is ignored and shows its error."""
        self.is_valid()
        wanted: dict[str, Any] = {k: v for k, v in self.cleaned_data.items() if v}
        condition = Q()
        text = wanted.get("q")
        if text and search.is_short(text):
            condition &= search.containing(text) & search.among_newest()
        if actor := wanted.get("actor"):
            condition &= by_actor(actor)
        if action := wanted.get("action"):
            condition &= Q(action=action) if "." in action else Q(action__startswith=f"{action}.")
        if target := wanted.get("target"):
            condition &= Q(target=target)
        if since := wanted.get("since"):
            condition &= Q(at__gte=since)
        if until := wanted.get("until"):
            condition &= Q(at__lte=until)
        if before := wanted.get("before"):
            condition &= Q(pk__lt=before)
        return condition

    def entries(self, limit: int) -> list[AuditEntry]:
        """Return the newest `limit` rows that match the filters."""
        rows = AuditEntry.objects.filter(self.condition()).order_by("-id")
        text, before = self.cleaned_data.get("q"), self.cleaned_data.get("before")
        if not text or search.is_short(text):
            return list(rows[:limit])
        sql, params = search.by_segment(rows, text, ascending=False, position=before, limit=limit)
        return list(AuditEntry.objects.raw(sql, params))

    def searched_newest(self) -> int | None:
        """Number of newest rows that a short text is searched in; None if all are searched."""
        text = self.cleaned_data.get("q")
        return search.MAX_SCANNED if text and search.is_short(text) else None

    def narrowed(self) -> list[tuple[str, str]]:
        """Return the active filters as typed, for display."""
        names = [name for name in self.fields if name != "before"]
        return [(name, self.data[name]) for name in names if self.data.get(name)]


@signed_in
@require_GET
def audit_page(request: PersonRequest) -> HttpResponse:
    """Show the trail, newest first; `before` keeps pages stable while rows are added."""
    filters = AuditFilters(request.GET)
    shown = filters.entries(PAGE_SIZE + 1)
    entries = shown[:PAGE_SIZE]
    context = {
        "filters": filters,
        "actions": services.actions(),
        "rows": [(entry, compare_texts(entry.before, entry.after)) for entry in entries],
        "older": entries[-1].pk if len(shown) > PAGE_SIZE else None,
        "newest": not request.GET.get("before"),
        "narrowed": filters.narrowed(),
        "searched_newest": filters.searched_newest(),
        "now": timezone.now(),
    }
    return render(request, "core/audit.html", context)


@signed_in
@require_POST
def verify(request: PersonRequest) -> HttpResponse:
    """Verify the whole chain if it is short enough for a request; else show the command."""
    actor_of(request).require_power(Power.ADMINISTER)
    last = AuditEntry.objects.order_by("-id").values_list("pk", flat=True).first() or 0
    too_long = last > MAX_TO_VERIFY_HERE
    context = {
        "verdict": None if too_long else services.verify(),
        "rows": last,
        "now": db_now(),
    }
    return show(request, "core/verified.html", context)
