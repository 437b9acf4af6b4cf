"""The policy editor for new and registered dependencies, with a preview of the changes."""

import hashlib
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods
from django_htmx.http import HttpResponseClientRedirect

from breakers import names, publication
from breakers.models import Dependency, Service
from breakers.policies import policy
from breakers.policies.differences import compare_policies
from breakers.services import registry
from breakers.services.permissions import require_edit
from breakers.views import forms
from breakers.views.changes import render_refusal
from controlplane.core import canonical
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.json_values import Errors
from controlplane.core.page_responses import PersonRequest, show, signed_in

PREVIEW = "preview"
SAVE = "save"
MAX_REASON_LENGTH = 2000
MAX_SUGGESTED = 200
ANY = "dependency:"


@signed_in
@require_GET
def new_dependency(request: PersonRequest) -> HttpResponse:
    """Show a form for caller and callee; if both are given, redirect to the policy editor."""
    caller, callee = (request.GET.get(name, "").strip() for name in ("caller", "callee"))
    require_edit(actor_of(request), names.dependency_resource(caller, callee) if callee else ANY)
    errors: Errors = {}
    if "caller" in request.GET:
        try:
            registry.require_names(caller, callee)
        except InvalidInput as error:
            errors = error.errors
        else:
            found = Dependency.objects.for_pair(caller, callee).first()
            if found is not None and registry.is_registered(found):
                messages.info(request, f"{found.label} is already registered. This is its policy.")
            path = reverse("dependency_edit", args=[caller, callee])
            return HttpResponseClientRedirect(path) if request.htmx else redirect(path)
    services = Service.objects.order_by("slug").values_list("slug", flat=True)[:MAX_SUGGESTED]
    context = {"caller": caller, "callee": callee, "errors": errors, "services": services}
    return show(request, "breakers/new.html", context, status=422 if errors else 200)


@signed_in
@require_http_methods(["GET", "POST"])
def edit_policy(request: PersonRequest, caller: str, callee: str) -> HttpResponse:
    """GET shows the policy editor, POST with `do=save` saves, any other POST previews."""
    require_edit(actor_of(request), names.dependency_resource(caller, callee))
    dependency = _find_or_new(caller, callee)
    if request.method == "GET":
        document = policy.remove_aliases(dependency.document)
        texts = forms.untouched_texts(document, dependency.on_outage)
        return render(request, "breakers/edit.html", _form_context(dependency, texts, {}))
    texts = forms.read_posted(request.POST)
    context = _validated_context(dependency, texts)
    wants_part = bool(request.htmx) and request.htmx.target == PREVIEW
    if wants_part:
        return render(request, "breakers/_policy_preview.html", context)
    if request.POST.get("do") != SAVE or context["errors"]:
        status = 422 if context["errors"] else 200
        return render(request, "breakers/edit.html", _with_posted(request, context), status=status)
    return _save(request, dependency, context, db_now())


def _save(
    request: PersonRequest, dependency: Dependency, context: dict[str, Any], now: datetime
) -> HttpResponse:
    """Save the policy, unless it was changed by somebody else since the form was opened."""
    caller, callee = dependency.caller, dependency.callee
    count = len(context["changes"])
    if not count and registry.is_registered(dependency):
        messages.info(request, "No changes to save.")
        return redirect("dependency_page", caller=caller, callee=callee)
    try:
        with transaction.atomic():
            publication.lock()
            present = _find_or_new(caller, callee)
            if request.POST.get("seen") != _policy_version(present):
                raise Conflict(
                    "Someone else changed this policy since you opened it. Reload the page."
                )
            registry.put_dependency(
                caller=caller,
                callee=callee,
                fields=context["fields"],
                reason=request.POST.get("reason", "")[:MAX_REASON_LENGTH],
                actor=actor_of(request),
                now=now,
            )
    except InvalidInput as error:
        context = _form_context(dependency, context["texts"], error.errors)
        return render(request, "breakers/edit.html", _with_posted(request, context), status=422)
    except Conflict as conflict:
        return render_refusal(request, dependency, conflict.detail)
    changes = f"{count} change{'' if count == 1 else 's'} saved: {caller} → {callee}"
    if not registry.is_registered(dependency):
        changes = f"Registered: {caller} → {callee}"
    messages.success(request, f"{changes}. Services apply it within seconds.")
    return redirect("dependency_page", caller=caller, callee=callee)


def _find_or_new(caller: str, callee: str) -> Dependency:
    if not (names.is_slug(caller) and names.is_slug(callee)):
        raise Http404
    found = Dependency.objects.for_pair(caller, callee).first()
    return found or Dependency(caller=caller, callee=callee)


def _validated_context(dependency: Dependency, texts: dict[str, str]) -> dict[str, Any]:
    """Return the form's context with the changes that saving would make, or the errors."""
    fields, errors = forms.parse_fields(texts)
    after: dict[str, Any] = {}
    try:
        after = registry.validate_fields(fields)
    except InvalidInput as error:
        for path, problems in error.errors.items():
            errors.setdefault(path, []).extend(problems)
    present = registry.registered_state(dependency) or registry.validate_fields({})
    changes = [] if errors else compare_policies(present, after)
    context = _form_context(dependency, texts, errors)
    return {**context, "fields": fields, "changes": changes, "judged": True}


def _form_context(dependency: Dependency, texts: dict[str, str], errors: Errors) -> dict[str, Any]:
    return {
        "dependency": dependency,
        "texts": texts,
        "parts": forms.build_sections(texts, errors),
        "errors": errors,
        "unplaced": forms.unplaced_errors(errors),
        "route_errors": forms.errors_about("routes", errors),
        "outage_errors": forms.errors_about("on_outage", errors),
        "outage": {name: texts.get(f"on_outage.{name}", "") for name in policy.OUTAGE_FIELDS},
        "outage_actions": policy.OUTAGE_ACTIONS,
        "seen": _policy_version(dependency),
    }


def _with_posted(request: PersonRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add two posted values to the context: the reason, and the policy version the form showed."""
    return {
        **context,
        "seen": request.POST.get("seen", ""),
        "reason": request.POST.get("reason", ""),
    }


def _policy_version(dependency: Dependency) -> str:
    text = canonical.dumps(registry.audit_state(dependency))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
