"""Code shared by both checklists: loads a service's policies and prints unmet items.

    python pre_deployment.py MODULE:NAME

NAME is a list of policies in that module.
"""

import importlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from switchgear import Policy


@dataclass(frozen=True)
class Item:
    """A checklist item: `is_met` checks a policy, `why` tells the risk if the item is not met."""

    wanted: str
    why: str
    is_met: Callable[[Policy], bool]


def check(items: Iterable[Item]) -> int:
    """Check the policies named on the command line and print the items that are not met.

    Return the exit code: 0 if all are met, 1 if not, 2 for wrong usage.
    """
    if len(sys.argv) != 2 or ":" not in sys.argv[1]:
        print(f"usage: python {sys.argv[0]} MODULE:NAME", file=sys.stderr)
        return 2
    module, _, name = sys.argv[1].partition(":")
    policies: list[Policy] = list(getattr(importlib.import_module(module), name))
    rows = [(policy, item) for policy in policies for item in items]
    missing = [(policy, item) for policy, item in rows if not item.is_met(policy)]
    for policy, item in missing:
        print(f"MISSING {policy.name}: {item.wanted}. {item.why}")
    print(f"{len(rows) - len(missing)} of {len(rows)} met, for {len(policies)} dependencies")
    return 1 if missing or not policies else 0
