"""Teams for tests: a company with an admin and an approver, made from the shell."""

from typing import Any

from controlplane.accounts.models import Team
from controlplane.accounts.teams import services
from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now

SHELL = system_actor("shell:root")
REASON = "Payments owns its own switches since May"


def make_team(slug: str, name: str = "", **wanted: Any) -> Team:
    """Create a team; `members` map user names to a role in the team, `owns` are patterns."""
    wanted = {"name": name or slug.title(), **wanted}
    services.create_team(slug=slug, wanted=wanted, actor=SHELL, now=db_now())
    return Team.objects.get(slug=slug)
