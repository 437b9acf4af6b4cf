"""Measures the screens of an organization: 12 teams, 300 people by SCIM, 2,000 switches.

The identity provider is :class:`controlplane.tests.fake_directory.FakeDirectory`, over real HTTP.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from controlplane.tests.fake_directory import GROUP_NAMES, FakeDirectory

from . import dead_letters, fixtures, lists, pages
from .latencies import Latencies
from .page_watch import Browser
from .servers import HOST, ServerUnderTest

PEOPLE = 300
SWITCHES, ENGAGED, OVERDUE = 2_000, 240, 60
DEPENDENCIES, SLOS, ALERTS, TOKENS = 240, 120, 60, 120
STREAMS = [f"axiom:dlq:{name}-{n}" for name in GROUP_NAMES for n in range(3)]
LETTERS = 20
"""Dead letters in each stream."""
ROOT, OWN = "platform", "payments"
"""The root team, and the team of the person who opens the screens."""
TODAY = datetime.now(UTC)
SCREENS = {
    "switchboard": "/",
    "switchboard, mine": "/?team=mine",
    "switchboard, a team": "/?team=search",
    "needs attention": "/attention/",
    "needs attention, mine": "/attention/?team=mine",
    "approvals": "/approvals/",
    "breakers, mine": "/breakers/?team=mine",
    "dead letters": "/dead-letters/",
    "dead letters, mine": "/dead-letters/?team=mine",
    "alerts": "/alerts/",
    "alerts, mine": "/alerts/?team=mine",
    "SLOs, mine": "/slos/?team=mine",
    "report of this week": f"/reports/weekly/{TODAY:%G-W%V}/",
    "report of a team": f"/reports/weekly/{TODAY:%G-W%V}/{OWN}/",
    "fleet": "/fleet/",
    "fleet, mine": "/fleet/?team=mine",
    "environments": "/environments/",
    "teams": "/teams/",
    "a team": f"/teams/{OWN}/",
    "unowned": "/teams/unowned/",
    "authority": "/teams/authority/",
    "people": "/people/",
    "tokens": "/tokens/",
    "audit": "/audit/",
    "who could": f"/audit/who-could/?action=release&resource=feature:{OWN}.switch-1&day={TODAY:%F}",
    "find anything": "/find/part/?q=pay",
    "one switch": f"/switches/feature/{OWN}.switch-1/",
}


@dataclass(frozen=True)
class TeamCosts:
    """Seconds in which SCIM provisioned all people and groups, and the latencies of screens."""

    provisioned_seconds: float
    pages: Sequence[tuple[str, Latencies]]


def sibling_variables(port: int, token: str) -> Mapping[str, str]:
    """Return environment variables by which a console on this port is its own sibling."""
    url = f"http://{HOST}:{port}"
    return {"SIBLINGS": f"staging={url}", "SIBLING_TOKENS": f"staging={token}"}


def insert_rows(audited: int) -> None:
    """Insert teams, switches, dependencies, SLOs with alerts, dead letters, tokens, audit rows."""
    from controlplane.core.clock import db_now

    now = db_now()
    lists.insert_audit_rows(audited)
    _create_teams(now)
    _create_switches(now)
    fixtures.create_dependencies(DEPENDENCIES)
    fixtures.insert_slos(SLOS, now, fixtures.PAGE_RULE)
    _create_alerts(now)
    _create_letters(now)
    _create_tokens(now)
    fixtures.analyze()


def clear() -> None:
    """Delete the inserted rows, except audit rows, people, tokens and teams."""
    from slo.models import Alert

    dead_letters.clear(*STREAMS)
    Alert.objects.all().delete()
    fixtures.delete_dependencies()
    fixtures.delete_slos()


def measure(web: ServerUnderTest, person: Browser, token: str) -> TeamCosts:
    """Provision people and groups, and fetch all screens as `person`; `token` is for SCIM."""
    began = time.monotonic()
    directory = FakeDirectory(web.url, token)
    directory.provision(people=PEOPLE)
    directory.close()
    provisioned = time.monotonic() - began
    _make_operators()
    found = [(name, pages.measure_page(person, path)) for name, path in SCREENS.items()]
    return TeamCosts(provisioned, found)


def _create_teams(now: datetime) -> None:
    """Create a team for each group; all are below the root team, and its members join by hand."""
    from controlplane.accounts.teams import services
    from controlplane.core.actors import system_actor

    for slug in (ROOT, *(name for name in GROUP_NAMES if name != ROOT)):
        number = GROUP_NAMES.index(slug)
        wanted = {
            "name": slug.capitalize(),
            "parent": None if slug == ROOT else ROOT,
            "member_group": slug,
            "members": {fixtures.USER: "member"} if slug == OWN else {},
            "owns": [
                f"feature:{slug}.*",
                f"service:bench-{number}",
                f"dependency:bench-{number}*",
                f"slo:bench-{number}*",
                f"stream:axiom:dlq:{slug}*",
            ],
        }
        services.create_team(slug=slug, wanted=wanted, actor=system_actor("bench"), now=now)


def _create_switches(now: datetime) -> None:
    """Insert switches of all teams; some engaged ones are overdue."""
    from switches.models import Episode, Publication

    fixtures.create_switches(1, 1)
    head = Publication.objects.get()
    keys = [f"{GROUP_NAMES[n % len(GROUP_NAMES)]}.switch-{n}" for n in range(SWITCHES - 1)]
    episodes = fixtures.insert_switches(keys, ENGAGED - 1, now, engaged_version=head.version)
    late, past = [episode.pk for episode in episodes[:OVERDUE]], now - timedelta(hours=1)
    Episode.objects.filter(pk__in=late).update(
        engaged_at=past - timedelta(days=1), expires_at=past, overdue_at=past
    )


def _create_alerts(now: datetime) -> None:
    from slo.models import Alert, Slo

    Alert.objects.bulk_create(
        Alert(
            kind="burn",
            slo=slo,
            subject=slo.name,
            service=slo.service,
            rule="1h/5m>14 page",
            label="page",
            severity="critical",
            summary=f"{slo.name} burned its error budget at 18.2× the allowed rate over 1h",
            opened_at=now - timedelta(minutes=number),
            firing_at=now,
        )
        for number, slo in enumerate(Slo.objects.filter(name__startswith="bench-")[:ALERTS])
    )


def _create_letters(now: datetime) -> None:
    from breakers.dead_letters.monitoring import streams

    for name in STREAMS:
        dead_letters.write_letters(LETTERS, name)
        streams.find_stream("default", name, now)


def _create_tokens(now: datetime) -> None:
    from controlplane.accounts.models.teams import Team
    from controlplane.accounts.people.services import find_first_admin
    from controlplane.accounts.tokens import services
    from controlplane.core.actors import system_actor

    teams = list(Team.objects.order_by("slug"))
    owner = find_first_admin()
    assert owner is not None
    for number in range(TOKENS):
        services.create_token(
            name=f"bench-{number}",
            owner=owner,
            scopes=["switches:read", "report:write"],
            team=teams[number % len(teams)],
            actor=system_actor("bench"),
            now=now,
        )


def _make_operators() -> None:
    """Make every third person of the directory an operator."""
    from controlplane.accounts.models.people import User
    from controlplane.accounts.people.services import change_roles
    from controlplane.core.actors import system_actor
    from controlplane.core.clock import db_now
    from controlplane.core.roles import Role

    people = User.objects.filter(username__startswith="person").order_by("pk")
    chosen = list(people.values_list("pk", flat=True))[::3]
    change_roles(dict.fromkeys(chosen, Role.OPERATOR), actor=system_actor("bench"), now=db_now())
