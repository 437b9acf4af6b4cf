"""API of the whole configuration: export, comparison, load, and JSON Schemas for editors."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.configuration import permissions, services
from controlplane.core.configuration.readers import OUTCOMES, SAME, Loaded, LoadOptions
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.fields import EmptyBody, Flag, Text
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.views import ApiView, Done, mutation

FILES_HELP = "Texts of configuration files (YAML) by name: `switches.yaml`, `rules.yaml`, …"
KEEP_HELP = "Keep entries that were edited in the console since they were loaded."


class ConfigurationFilesShape(serializers.Serializer[Any]):
    files = serializers.DictField(child=serializers.CharField(), help_text=FILES_HELP)


class ConfigurationSchemasShape(serializers.Serializer[Any]):
    schemas = serializers.DictField(
        child=serializers.DictField(), help_text="JSON Schemas by file: `switches.schema.json`, …"
    )


class EntryChangeShape(serializers.Serializer[Any]):
    kind = serializers.CharField()
    name = serializers.CharField()
    outcome = serializers.ChoiceField([one for one in OUTCOMES if one != SAME])
    differences = serializers.ListField(child=serializers.CharField())
    edited = serializers.CharField(help_text="Who edited it since the last load; or empty.")
    note = serializers.CharField(help_text="What else the change needs; or empty.")
    approval = serializers.IntegerField(
        allow_null=True, help_text="After a load: the request for approval that it waits for."
    )


class ConfigurationPlanShape(serializers.Serializer[Any]):
    """The changes that a load makes; entries without a change are only counted."""

    plan = serializers.CharField(help_text="Digest of the plan, for `plan` of a load.")
    changes = EntryChangeShape(many=True)
    counts = serializers.DictField(
        child=serializers.IntegerField(), help_text=f"Entries by outcome: {', '.join(OUTCOMES)}."
    )
    elsewhere = serializers.ListField(
        child=serializers.CharField(), help_text="Entries that are in no file; they stay."
    )
    remarks = serializers.ListField(child=serializers.CharField())
    dry_run = serializers.BooleanField(required=False)


class DiffBody(EmptyBody):
    files = serializers.DictField(child=Text(), help_text=FILES_HELP)
    keep_edited = Flag(required=False, help_text=KEEP_HELP)


class LoadBody(EmptyBody):
    files = serializers.DictField(child=Text(), help_text=FILES_HELP)
    keep_edited = Flag(required=False, help_text=KEEP_HELP)
    plan = Text(
        required=False,
        max_length=64,
        help_text="Digest of the plan that you saw; 409 if the load would change anything else.",
    )
    reason = Text(required=False, max_length=2000, help_text="Reason for the audit trail.")


class ConfigurationView(ApiView):
    read_scope = permissions.READ
    write_scope = permissions.WRITE

    @extend_schema(responses=ConfigurationFilesShape)
    def get(self, request: Request) -> Response:
        """Export the current configuration as files, without secrets; loading them changes nothing.

        The files have people's e-mail addresses, which other tokens can't read.
        """
        permissions.require_admin(actor_of(request), permissions.READ)
        return Response({"files": services.export_texts()})

    @mutation(LoadBody, ConfigurationPlanShape)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Load configuration files, all or none; entries that are in no file stay.

        Changes of safety rules wait for a second person's approval.
        """
        require_fresh(self.request, now)
        files = body["files"]
        options = LoadOptions(actor=actor, now=now, keep_edited=body.get("keep_edited", False))
        loaded = services.load_texts(
            files, options, plan=body.get("plan", ""), reason=body.get("reason", "")
        )
        found = _render(files, loaded)
        changes = [{**one, "approval": None} for one in found["changes"]]  # They are rolled back.
        return Done(found, dry_run_data={**found, "changes": changes})


class ConfigurationDiffView(ApiView):
    write_scope = permissions.READ  # It changes nothing.

    @mutation(DiffBody, ConfigurationPlanShape)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Return what a load of these files would change, without changing it."""
        options = LoadOptions(
            actor=actor, now=now, keep_edited=body.get("keep_edited", False), dry_run=True
        )
        files = body["files"]
        return Done(_render(files, services.load_texts(files, options)))


class ConfigurationSchemasView(ApiView):
    read_scope = permissions.READ

    @extend_schema(
        responses={200: ConfigurationSchemasShape},
    )
    def get(self, _request: Request) -> Response:
        """Return the JSON Schemas of the configuration files, for editors."""
        return Response({"schemas": services.build_schemas()})


def _render(files: Mapping[str, str], loaded: Loaded) -> dict[str, Any]:
    return {
        "plan": services.digest_plan(files, loaded),
        "changes": [
            {
                "kind": one.kind,
                "name": one.name,
                "outcome": one.outcome,
                "differences": list(one.differences),
                "edited": one.edited,
                "note": one.note,
                "approval": one.approval or None,
            }
            for one in loaded.changes
            if one.outcome != SAME
        ],
        "counts": {outcome: loaded.count(outcome) for outcome in OUTCOMES},
        "elsewhere": list(loaded.elsewhere),
        "remarks": list(loaded.remarks),
    }
