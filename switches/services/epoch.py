"""Start of a new epoch of snapshot versions after a database restore."""

import uuid
from datetime import datetime

from django.db import transaction

from controlplane.core import reasons
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import InvalidInput
from controlplane.core.roles import Power
from switches import publication
from switches.models import Publication

ADVICE = "Name what was restored and its backup time: “backup of 02:00 UTC restored, INC-7”."


def begin_epoch(*, reason: str, actor: Actor, now: datetime) -> Publication:
    """Publish the present state under a new epoch, which clients accept whatever version they have.

    Raise :class:`Forbidden` if the actor is neither an admin nor the server's shell, and
    :class:`InvalidInput` for an invalid reason.
    """
    if actor.type != "system":
        actor.require_power(Power.ADMINISTER)
    if problems := reasons.find_text_problems(reason, called="reason", advice=ADVICE):
        raise InvalidInput({"reason": problems})
    with transaction.atomic():
        head = publication.lock()
        before = {"epoch": str(head.epoch), "version": head.version}
        head.epoch = uuid.uuid4()
        head.began_version = publication.advance(head, now)
        head.save(update_fields=["epoch", "began_version"])
        audit.record(
            actor=actor,
            action="epoch.began",
            target="publication",
            reason=reason.strip(),
            before=before,
            after={"epoch": str(head.epoch), "version": head.version},
            now=now,
        )
        return head
