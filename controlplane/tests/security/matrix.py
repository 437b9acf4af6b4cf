"""The permission matrix of all paths, written by hand from the contract, not read from the code.

A need is one of

* ``open``: anybody; ``person``: any signed-in person, but no token; * a scope, or alternatives (``a
| b``): a person whose role has it, or a token with it whose owner's   role has it; * ``scope +
approve`` and ``scope + admin``: the same, and the person, or the token's owner, is an   approver
(or an admin); * ``approve`` and ``admin``: a signed-in person of that rank, never a token; *
``scim``: a token with this scope, never a person.

`@ release` says that teams may limit it: it is that action, on a resource of the kind that
:data:`KINDS` names. `@ edit & override` are two: the dependency of these tests has an override,
which ends with it. Without teams, and if nobody owns the resource, the need alone decides.

A method not listed here is refused for everybody.
"""

import re
from functools import cache
from typing import NamedTuple

from controlplane.core.actions import Action

API = """
switches/trip  POST switches:trip @ engage
hooks/alertmanager  POST switches:trip @ engage
experiments/<str:key>/arms  POST switches:trip @ engage
trips/  GET switches:read
trip-policies/  GET switches:read; PUT admin
rules/  GET switches:read; POST switches:write + admin
rules/<int:rule_id>/  GET switches:read; PUT, DELETE switches:write + admin
environment/  GET switches:read
reports/weekly/  GET reports:read
reports/weekly/<str:week>/  GET reports:read
reports/weekly/<str:week>/sign  POST approve
reports/weekly/<str:week>/<slug:team>/  GET reports:read
reports/weekly/<str:week>/<slug:team>/sign  POST approve
ramps/  GET switches:read
ramps/<int:ramp_id>/  GET switches:read
ramps/<int:ramp_id>/advance  POST ramps:write @ release at once
ramps/<int:ramp_id>/pause  POST ramps:write @ engage
ramps/<int:ramp_id>/resume  POST ramps:write @ release
ramps/<int:ramp_id>/abort  POST ramps:write @ engage
drills/  GET switches:read; POST switches:write @ engage
drills/instances/  GET switches:read; POST, DELETE switches:write + approve
drills/schedules/  GET switches:read
drills/schedules/<str:scope>/<str:key>/  DELETE switches:write @ edit
drills/<int:drill_id>/  GET switches:read
switches/  GET switches:read
switches/<str:scope>/<str:key>/  GET switches:read; PATCH switches:write @ edit
switches/<str:scope>/<str:key>/engage  POST switches:write @ engage
switches/<str:scope>/<str:key>/extend  POST switches:write @ extend
switches/<str:scope>/<str:key>/acknowledge  POST switches:write @ extend
switches/<str:scope>/<str:key>/reconfirm  POST switches:write + person @ extend
switches/<str:scope>/<str:key>/release  POST switches:write @ release
switches/<str:scope>/<str:key>/undo  POST switches:write @ engage
switches/<str:scope>/<str:key>/preview  GET switches:read
switches/<str:scope>/<str:key>/calls  GET switches:read
switches/<str:scope>/<str:key>/comments/  GET switches:read; POST switches:write
switches/<str:scope>/<str:key>/history  GET switches:read
snapshot  GET switches:read
check  POST switches:read
dependencies/  GET breakers:read; POST breakers:write + admin @ edit
dependencies/<str:caller>/<str:callee>/  \
GET breakers:read; PUT breakers:write + admin @ edit; \
DELETE breakers:write + admin @ edit & override
dependencies/<str:caller>/<str:callee>/override  \
PUT breakers:write @ engage; DELETE breakers:write @ override
dependencies/<str:caller>/<str:callee>/override/undo  POST breakers:write @ engage
breakers/  GET breakers:read
breakers/<str:caller>/<str:callee>/history  GET breakers:read
services/  GET breakers:read; POST breakers:write + admin @ edit
services/<str:slug>/  GET breakers:read; PUT breakers:write + admin @ edit
samples/  GET breakers:read
samples/clear  POST admin
samples/load  POST admin
configuration/  GET config:read; POST config:write
configuration/diff  POST config:read
configuration/schemas  GET config:read
channels/  GET breakers:read
dlq/  GET dlq:read
dlq/streams/<letter_stream:name>/messages/  GET dlq:read
dlq/streams/<letter_stream:name>/messages/<str:entry_id>/  GET dlq:read
dlq/streams/<letter_stream:name>/messages/<str:entry_id>/retry  POST dlq:write @ replay
dlq/streams/<letter_stream:name>/messages/<str:entry_id>/discard  POST dlq:write @ purge
dlq/streams/<letter_stream:name>/messages/<str:entry_id>/reveal  POST dlq:write + admin
dlq/streams/<letter_stream:name>/groups/  GET dlq:read
dlq/streams/<letter_stream:name>/export  GET dlq:read
dlq/jobs/  GET dlq:read; POST dlq:write @ purge
dlq/jobs/<int:job_id>/  GET dlq:read
dlq/jobs/<int:job_id>/pause  POST dlq:write @ engage
dlq/jobs/<int:job_id>/resume  POST dlq:write @ purge
dlq/jobs/<int:job_id>/cancel  POST dlq:write @ engage
dlq/outbox/  GET dlq:read
dlq/outbox/<int:message_id>/retry  POST dlq:write
dlq/outbox/<int:message_id>/discard  POST dlq:write
dlq/archive/  GET dlq:read
dlq/archive/<int:departure_id>/  GET dlq:read
dlq/archive/<int:departure_id>/restore  POST dlq:write @ replay
slos/  GET slo:read; POST slo:write + admin @ edit
slos/<str:name>/  GET slo:read; PUT, DELETE slo:write + admin @ edit
slos/<str:name>/status  GET slo:read
slos/<str:name>/series  GET slo:read
slos/<str:name>/backtest  POST slo:read
slos/<str:name>/exclusions/  GET slo:read; POST slo:write @ override
slos/<str:name>/exclusions/<str:exclusion_id>/  DELETE slo:write @ override
sli/  POST slo:write | report:write
openslo/  GET slo:read; POST slo:write + admin @ edit
alerts/  GET slo:read
alerts/<str:alert_id>/  GET slo:read
alerts/ack  POST slo:write @ extend
alerts/<str:alert_id>/ack  POST slo:write @ extend
alerts/<str:alert_id>/comments/  GET slo:read; POST slo:write
alerts/<str:alert_id>/postmortem  GET slo:read & audit:read
thresholds/  GET slo:read; POST slo:write + admin
thresholds/<str:name>/  GET slo:read; PUT, DELETE slo:write + admin
approvals/  GET switches:read
approvals/<int:approval_id>/  GET switches:read; PATCH switches:write
approvals/<int:approval_id>/approve  POST approve @ approve
approvals/<int:approval_id>/deny  POST approve @ approve
reviews/<int:review_id>/sign  POST approve @ approve
audit/  GET audit:read
audit/export  GET audit:read
audit/who-could  GET audit:read
attention/  GET switches:read
favorites/  GET person
favorites/<slug:kind>/<favorite_key:key>  PUT, DELETE person
fleet/  GET switches:read
jobs/  GET switches:read
jobs/<int:job_id>/  GET switches:read
jobs/<int:job_id>/pause  POST switches:write @ engage
jobs/<int:job_id>/resume  POST switches:write @ release
jobs/<int:job_id>/cancel  POST switches:write @ engage
gates/  GET switches:read
gates/<str:name>  GET switches:read; POST gates:write
deliveries/  GET reports:read
deliveries/retry  POST switches:write
deliveries/<int:delivery_id>/  GET reports:read
deliveries/<int:delivery_id>/retry  POST switches:write
deliveries/<int:delivery_id>/discard  POST switches:write
targets/  GET switches:read; POST admin
targets/<int:target_id>/  GET switches:read; PUT, DELETE admin
targets/<int:target_id>/test  POST admin
routes/  GET switches:read; POST admin
routes/<int:route_id>/  DELETE admin
escalations/  GET switches:read
escalations/<int:escalation_id>/acknowledge  POST switches:write @ extend
degradation  GET switches:read | breakers:read
teams/  GET switches:read; POST admin
teams/<slug:slug>/  GET switches:read; PATCH approve @ edit; DELETE approve
teams/<slug:slug>/contacts/  GET switches:read; PUT approve @ edit
authority/  GET switches:read
authority/decision  GET switches:read
authority/ask  POST switches:write + person
authority/<slug:action>/<slug:kind>/  PUT, DELETE admin
users/  GET, POST admin
users/<int:user_id>/  PATCH admin
sessions/  GET person
sessions/end  POST person
sessions/<str:session_id>/  DELETE person
tokens/  GET, POST admin
tokens/<int:token_id>/revoke  POST admin
tokens/<int:token_id>/rotate  POST admin
tokens/<int:token_id>/hand-over  POST admin
"""

PAGES = """
audit/  GET person
audit/verify/  POST admin
audit/who-could/  GET person
approvals/  GET person
approvals/<int:approval_id>/  GET person
favorites/<slug:kind>/<favorite_key:key>  POST person
comments/<slug:kind>/<str:key>/  GET, POST switches:write | slo:write
approvals/<int:approval_id>/approve/  POST approve @ approve
approvals/<int:approval_id>/deny/  POST approve @ approve
approvals/<int:approval_id>/edit/  POST switches:write
reviews/<int:approval_id>/sign/  POST approve @ approve
attention/  GET person
attention/rows/  GET person
escalations/<int:escalation_id>/acknowledge/ POST switches:write @ extend
first-steps/  GET person
first-steps/part/  GET person
first-steps/hide/  POST switches:write
first-steps/show/  POST switches:write
samples/clear/  GET, POST admin
samples/load/  POST admin
fleet/  GET person
fleet/rows/  GET person
jobs/  GET person
jobs/rows/  GET person
jobs/<int:job_id>/pause/  GET, POST switches:write @ engage
jobs/<int:job_id>/resume/  GET, POST switches:write @ release
jobs/<int:job_id>/cancel/  GET, POST switches:write @ engage
deliveries/  GET person
deliveries/event/  GET person
deliveries/retry/  POST switches:write
deliveries/<int:delivery_id>/  GET person
deliveries/<int:delivery_id>/retry/  POST switches:write
deliveries/<int:delivery_id>/discard/  POST switches:write
runbooks/  GET person
runbooks/<slug:slug>/  GET person
targets/  GET person
targets/new/<str:kind>/  GET, POST admin
targets/<int:target_id>/change/  GET, POST admin
targets/<int:target_id>/remove/  GET, POST admin
targets/<int:target_id>/test/  POST admin
routes/new/  GET, POST admin
routes/<int:route_id>/remove/  GET, POST admin
degradation/  GET person
breakers/  GET person
breakers/map/  GET person
breakers/fallbacks/  GET person
breakers/infrastructure/  GET person
breakers/new/  GET admin
breakers/<slug:caller>/<slug:callee>/  GET person
breakers/<slug:caller>/<slug:callee>/override/  GET, POST breakers:write @ engage
breakers/<slug:caller>/<slug:callee>/override/remove/  GET, POST breakers:write @ override
breakers/<slug:caller>/<slug:callee>/override/undo/  POST breakers:write @ engage
breakers/<slug:caller>/<slug:callee>/override/status/  GET person
breakers/<slug:caller>/<slug:callee>/remove/ GET, POST admin @ edit & override
breakers/<slug:caller>/<slug:callee>/edit/  GET, POST admin @ edit
dead-letters/  GET person
dead-letters/jobs/<int:job_id>/  GET person
dead-letters/archive/<int:departure_id>/  GET person
dead-letters/archive/<int:departure_id>/restore/  GET, POST dlq:write @ replay
dead-letters/archive/<int:departure_id>/reveal/  GET, POST admin
dead-letters/<str:server>/-/letter/<letter_id:entry_id>/<letter_stream:name>/  GET person
dead-letters/<str:server>/-/retry/<letter_id:entry_id>/<letter_stream:name>/  \
GET, POST dlq:write @ replay
dead-letters/<str:server>/-/edit/<letter_id:entry_id>/<letter_stream:name>/  \
GET, POST dlq:write @ replay
dead-letters/<str:server>/-/discard/<letter_id:entry_id>/<letter_stream:name>/  \
GET, POST dlq:write @ purge
dead-letters/<str:server>/-/reveal/<letter_id:entry_id>/<letter_stream:name>/  GET, POST admin
dead-letters/<str:server>/-/bulk/<letter_stream:name>/  GET, POST dlq:write @ replay
dead-letters/<str:server>/<letter_stream:name>/  GET person
slos/  GET person
slos/thresholds/  GET person
slos/thresholds/new/  GET, POST admin
slos/thresholds/<str:name>/edit/  GET, POST admin
slos/thresholds/<str:name>/remove/  GET, POST admin
slos/new/  GET, POST admin @ edit
alerts/  GET person
alerts/<int:alert_id>/  GET person
alerts/<int:alert_id>/acknowledge/  GET, POST slo:write @ extend
alerts/groups/<int:group_id>/acknowledge/  GET, POST slo:write @ extend
alerts/<int:alert_id>/postmortem/  GET person
slos/<str:name>/  GET person
slos/<str:name>/series/  GET person
slos/<str:name>/edit/  GET, POST admin @ edit
slos/<str:name>/remove/  GET, POST admin @ edit
slos/<str:name>/backtest/  GET, POST person
slos/<str:name>/exclusions/new/  GET, POST slo:write @ override
slos/<str:name>/exclusions/<int:exclusion_id>/remove/  GET, POST slo:write @ override
<top>  GET person
switchboard/rows/  GET person
alarm/  GET person
switches/engage/  GET, POST switches:write @ engage
switches/engage/preview/  POST switches:write
lost-changes/  GET person; POST switches:write
environments/  GET person
environments/rows/  GET person
rules/  GET person
rules/new/  GET, POST admin
rules/<int:rule_id>/change/  GET, POST admin
rules/<int:rule_id>/remove/  GET, POST admin
trips/  GET person
trips/<int:trip_id>/dismiss/  GET, POST switches:write @ extend
trips/policies/new/  GET, POST admin
trips/policies/<slug:trigger>/  GET, POST admin
trips/policies/<slug:trigger>/remove/  POST admin
reports/weekly/  GET person
reports/weekly/<str:week>/  GET person
reports/weekly/<str:week>/sign/  POST approve
reports/weekly/<str:week>/<slug:team>/  GET person
reports/weekly/<str:week>/<slug:team>/sign/  POST approve
drills/  GET person
drills/new/  GET, POST switches:write @ engage
drills/instances/new/  GET, POST approve
drills/instances/remove/  POST approve
drills/schedules/remove/  POST switches:write @ edit
drills/<int:drill_id>/cancel/  GET, POST switches:write @ engage
ramps/  GET person
ramps/<int:ramp_id>/  GET person
ramps/<int:ramp_id>/part/  GET person
ramps/<int:ramp_id>/abort/  POST ramps:write @ engage
ramps/<int:ramp_id>/pause/  GET, POST ramps:write @ engage
ramps/<int:ramp_id>/resume/  GET, POST ramps:write @ release
ramps/<int:ramp_id>/advance/  GET, POST ramps:write @ release at once
switches/<str:scope>/<str:key>/  GET person
switches/<str:scope>/<str:key>/effect/  GET person
switches/<str:scope>/<str:key>/calls/  GET person
switches/<str:scope>/<str:key>/callers/  GET person
switches/<str:scope>/<str:key>/extend/  GET, POST switches:write @ extend
switches/<str:scope>/<str:key>/release/  GET, POST switches:write @ release
switches/<str:scope>/<str:key>/acknowledge/  GET, POST switches:write @ extend
switches/<str:scope>/<str:key>/reconfirm/  GET, POST switches:write @ extend
switches/<str:scope>/<str:key>/undo/  POST switches:write @ engage
switches/<str:scope>/<str:key>/describe/  GET, POST switches:write @ edit
find/  GET person
find/part/  GET person
preferences/  GET, POST person
preferences/new-password/  GET, POST person
preferences/sessions/  GET person
preferences/sessions/end/  POST person
people/  GET admin
people/new/  GET, POST admin
people/<int:user_id>/  GET admin
people/<int:user_id>/change/  GET, POST admin
people/<int:user_id>/deactivate/  GET, POST admin
people/<int:user_id>/activate/  POST admin
people/<int:user_id>/sessions/  POST admin
people/<int:user_id>/factors/  GET, POST admin
people/<int:user_id>/link/  POST admin
people/<int:user_id>/emergency-code/revoke/  POST admin
ask/  GET, POST switches:write
teams/  GET person
teams/new/  GET, POST admin
teams/unowned/  GET person
teams/authority/  GET person
teams/authority/new/  GET, POST admin
teams/authority/<slug:action>/<slug:kind>/  GET, POST admin
teams/<slug:slug>/  GET person
teams/<slug:slug>/change/  GET, POST approve @ edit
teams/<slug:slug>/members/  GET, POST approve @ edit
teams/<slug:slug>/members/<int:user_id>/  GET, POST approve
teams/<slug:slug>/owns/  GET, POST approve @ edit
teams/<slug:slug>/delete/  GET, POST approve
teams/<slug:slug>/contacts/  GET, POST approve @ edit
tokens/  GET person
tokens/new/  GET, POST admin
tokens/<int:token_id>/revoke/  GET, POST person
tokens/<int:token_id>/rotate/  GET, POST person
tokens/<int:token_id>/hand-over/  GET, POST admin
theme/  POST open
sign-in/  GET, POST open
sign-in/second/  GET, POST open
sign-in/passkey/  GET, POST open
sign-in/again/  GET open
sign-in/provider/  POST open
sign-in/provider/callback/  GET open
sign-in/forgotten/  GET, POST open
sign-in/reset/<str:uid>/<str:token>/  GET, POST open
sign-out/  POST open
confirm/  GET, POST person
confirm/provider/  POST person
preferences/security/  GET person
preferences/security/app/  GET, POST person
preferences/security/passkey/  GET, POST person
preferences/security/remove/  POST person
preferences/security/codes/  POST person
preferences/emergency-code/  GET person; POST switches:emergency
preferences/emergency-code/revoke/  POST person
slack/interactions  POST open
health/startup  GET open
health/live  GET open
health/ready  GET open
health/ready/data  GET open
api/schema/  GET open
api/docs/  GET open
api/docs/<slug:slug>/  GET open
"""


SCIM = """
Users  GET, POST scim
Users/<str:resource_id>  GET, PUT, PATCH, DELETE scim
Groups  GET, POST scim
Groups/<str:resource_id>  GET, PUT, PATCH, DELETE scim
ServiceProviderConfig  GET scim
ResourceTypes  GET scim
ResourceTypes/<str:name>  GET scim
Schemas  GET scim
Schemas/<str:name>  GET scim
"""


# Where `test_matrix_there.py` has nothing of the kind; a person's own token, which nobody else is
# told of; and a step before its time, which takes an approver while the ramp still dwells.
NOT_THERE = {
    "api/v1/gates/<str:name>",
    "api/v1/services/<str:slug>/",
    "ramps/<int:ramp_id>/advance/",
    "tokens/<int:token_id>/revoke/",
    "tokens/<int:token_id>/rotate/",
}
KINDS = {
    "switches": "segment",
    "drills": "segment",
    "approvals": "global",
    "reviews": "segment",
    "hooks": "experiment",
    "experiments": "experiment",
    "trips": "experiment",
    "ramps": "feature",
    "jobs": "feature",
    "dependencies": "dependency",
    "breakers": "dependency",
    "services": "service",
    "dlq": "stream",
    "dead-letters": "stream",
    "slos": "slo",
    "openslo": "slo",
    "alerts": "slo",
    "teams": "team",
    "escalations": "",
}
"""Kinds of the resources in `full_house`, by the first part of a path that is an action."""


class Need(NamedTuple):
    """`scopes`: one of them will do, or with `all_scopes` each is needed. `rank`: at least that."""

    open: bool = False
    person: bool = False
    program: bool = False
    scopes: tuple[str, ...] = ()
    all_scopes: bool = False
    rank: str = "viewer"
    actions: tuple[Action, ...] = ()

    @property
    def has_rank(self) -> bool:
        """True if more than a scope is required."""
        return self.person or self.rank != "viewer"


def names_a_thing(route: str, need: Need) -> bool:
    """True if `test_matrix_there.py` reads what this address names, as each role."""
    return "<" in route and not (need.open or need.program) and route not in NOT_THERE


def kind_of_resource(route: str) -> str:
    """Return the kind of the resource that a path with an action concerns."""
    return KINDS[route.removeprefix("api/v1/").partition("/")[0]]


@cache
def needs() -> dict[str, dict[str, Need]]:
    """Return the needs by route, as in the resolver, and by method."""
    found = {f"api/v1/{route}": words for route, words in _lines(API)}
    found |= {"" if route == "<top>" else route: words for route, words in _lines(PAGES)}
    found |= {f"scim/v2/{route}": words for route, words in _lines(SCIM)}
    found["metrics"] = {"GET": need("metrics:read")}
    return found


def need(text: str) -> Need:
    """Read one need. Raises ValueError for a word that is none."""
    text, _, actions = text.partition(" @ ")
    if actions:
        found = (Action(name.replace(" ", "_")) for name in actions.split(" & "))
        return need(text)._replace(actions=tuple(found))
    known = {
        "open": Need(open=True),
        "person": Need(person=True),
        "approve": Need(person=True, rank="approver"),
        "admin": Need(person=True, rank="admin"),
        "scim": Need(program=True, scopes=("scim",)),
    }
    if text in known:
        return known[text]
    scopes, _, also = (part.strip() for part in text.partition("+"))
    ranks = {"": "viewer", "person": "viewer", "approve": "approver", "admin": "admin"}
    if ":" not in scopes or also not in ranks:
        raise ValueError(f"{text!r} is no need.")
    every = "&" in scopes
    wanted = tuple(one.strip() for one in scopes.split("&" if every else "|"))
    return Need(person=also == "person", scopes=wanted, all_scopes=every, rank=ranks[also])


def _lines(table: str) -> list[tuple[str, dict[str, Need]]]:
    rows = []
    for line in table.strip().splitlines():
        route, words = line.split(None, 1)
        methods = {}
        for one in words.split(";"):
            named, wanted = re.fullmatch(r"\s*([A-Z, ]+) (.+)", one).groups()
            methods |= dict.fromkeys(re.split(r",\s*", named), need(wanted.strip()))
        rows.append((route, methods))
    return rows
