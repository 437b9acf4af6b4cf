"""How far the installation has degraded: from what is away to a level and its causes. Pure."""

from typing import Any

NAMES = ("normal", "degraded", "critical", "emergency")


def judge(database_reachable: bool, redis_reachable: bool) -> tuple[int, list[str]]:
    """The level, 0 to 3, and a sentence for each cause, the worst first."""
    causes = {}
    if not database_reachable:
        causes["PostgreSQL does not answer: switches hold as published, changes are refused."] = 3
    if not redis_reachable:
        causes["Redis does not answer: changes are told by polling, up to a second later."] = 2
    return max(causes.values(), default=0), list(causes)


def picture(database_reachable: bool, redis_reachable: bool) -> dict[str, Any]:
    """The same as the API tells it."""
    level, causes = judge(database_reachable, redis_reachable)
    return {"level": level, "name": NAMES[level], "causes": causes}
