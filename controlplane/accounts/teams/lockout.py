"""Detection of changes after which nobody may repair a change of teams, or release `global`."""

from controlplane.core.actions import Action

from .state import TeamState

CHECKED = (
    (Action.APPROVE, "team:", "approve changes of teams"),
    (Action.APPROVE, "global:all", "approve the release of everything (global:all)"),
    (Action.RELEASE, "global:all", "release everything (global:all)"),
    (Action.RELEASE_AT_ONCE, "global:all", "release everything (global:all) at once"),
)


def find_lost(before: TeamState, after: TeamState) -> str:
    """Return a sentence about what nobody may do any more, "" if there is nothing."""
    lost = [
        words
        for action, resource, words in CHECKED
        if _is_possible(before, action, resource) and not _is_possible(after, action, resource)
    ]
    if not lost:
        return ""
    roots = ", ".join(sorted(after.names[slug] for slug in after.roots()))
    return (
        f"Nobody could then {', or '.join(lost)}: that takes an approver, or a lead, in a team"
        f" without a parent ({roots or 'none'}). Add one first."
    )


def _is_possible(state: TeamState, action: Action, resource: str) -> bool:
    """Return True if somebody may do it; roles alone are taken to suffice for somebody."""
    found = state.who_may(action, resource)
    return found is None or bool(found)
