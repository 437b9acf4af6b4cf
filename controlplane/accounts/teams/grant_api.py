"""API to ask the owner of a resource for an action on it."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.approvals.api import ApprovalShape
from controlplane.core.http.fields import EmptyBody, Text
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.views import ApiView, Done, mutation

from . import grants


class AskBody(EmptyBody):
    action = serializers.ChoiceField([action.value for action in Action])
    resource = Text(max_length=250, help_text="Such as `segment:finance` or `service:core`.")
    reason = Text(max_length=2000, help_text="Why you need it now.")


class AskView(ApiView):
    write_scope = "switches:write"

    @extend_schema(request=AskBody, responses={202: ApprovalShape}, auth=BY_SESSION)
    @mutation(AskBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Ask the owner of a resource to allow you one action on it for an hour.

        An approver of the owner decides. The answer to a refused request says if you can ask.
        """
        approval = grants.ask(**body, actor=actor, now=now)
        return Done(ApprovalShape.render(approval), status=202)
