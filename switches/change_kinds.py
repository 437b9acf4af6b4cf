"""The changes that this app adds to the change feed: of switches, ramps and rules."""

from collections.abc import Collection

from controlplane.core.audit.change_feed import CHANGE_KINDS, RELATED_TARGETS, ChangeKind
from controlplane.core.instances.exports import load_requested_switches
from switches.scopes import GLOBAL_ID


def _switch_path(target: str) -> str:
    scope, _, key = target.partition(":")
    return f"/switches/{scope}/{key}/"


CHANGE_KINDS.register(
    *(
        ChangeKind(action, icon, text, _switch_path)
        for action, icon, text in (
            ("switch.engaged", "engaged", "{target} engaged"),
            ("switch.released", "released", "{target} released"),
            ("emergency_order.refused", "engaged", "Emergency order for {target} refused"),
            ("emergency_order.ended", "released", "Refused emergency order for {target} ended"),
            ("switch.undone", "undo", "Engagement of {target} undone"),
            ("ramp.started", "ramping", "{target}: ramp started, {allow_percent:g} % allowed"),
            ("ramp.advanced", "ramping", "{target}: ramp advanced, {allow_percent:g} % allowed"),
            ("ramp.compensated", "engaged", "{target} engaged again: a gate failed"),
            ("ramp.aborted", "engaged", "{target} engaged again: ramp aborted"),
            ("drill.engaged", "drill", "{target} engaged for a drill"),
            ("drill.released", "drill", "{target} released after a drill"),
        )
    ),
    *(
        ChangeKind(f"rule.{done}", "rules", f"Safety rule {{name}} {done}", lambda _: "/rules/")
        for done in ("created", "changed", "removed")
    ),
    ChangeKind("trip_policy.changed", "trip", "Trip policies changed", lambda _: "/trips/"),
)


@RELATED_TARGETS.add()
def find_requested_switches(services: Collection[str]) -> Collection[str]:
    """Return the switches that the services check, and the global switch."""
    return {GLOBAL_ID}.union(*map(load_requested_switches, services))
