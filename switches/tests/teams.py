"""Two teams under a root team, with the people of tests."""

from controlplane.accounts.models import Membership, Ownership, Team, User
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import Api, person, signed_in

FINANCE, CHAT = "segment:finance", "feature:chat"


def create_team(slug: str, *patterns: str, parent: Team | None = None) -> Team:
    team = Team.objects.create(
        slug=slug, name=slug.capitalize(), parent=parent, created_at=db_now()
    )
    Ownership.objects.bulk_create(Ownership(team=team, pattern=pattern) for pattern in patterns)
    return team


def join(team: Team, role: str, name: str, *, lead: bool = False) -> User:
    """Create a person with a role in the console who is a member, or a lead, of the team."""
    user = User.objects.filter(username=name).first() or person(role, name)
    Membership.objects.create(team=team, user=user, role="lead" if lead else "member")
    return user


class People:
    """People of the teams Root, Payments (below it; owns finance and chat) and Search."""

    def __init__(self) -> None:
        self.root = create_team("root")
        self.payments = create_team("payments", "segment:fin*", "feature:chat", parent=self.root)
        self.search = create_team("search", "feature:search-*", parent=self.root)
        self.member = join(self.payments, "operator", "pat")
        self.lead = join(self.payments, "operator", "lee", lead=True)
        self.approver = join(self.payments, "approver", "amy")
        self.stranger = join(self.search, "operator", "sam")
        self.strange_approver = join(self.search, "approver", "sue")
        self.strange_lead = join(self.search, "operator", "len", lead=True)
        self.root_approver = join(self.root, "approver", "rita")
        self.admin = person("admin", "ann")

    def api(self, name: str) -> Api:
        return signed_in(getattr(self, name))
