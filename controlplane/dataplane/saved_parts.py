"""Those parts of a saved copy that older ones do not have: policies, and what is known to be away.

Pure. Each is written only if it is there, so that an older text is still what would be written.
"""

from typing import Any, NamedTuple
from uuid import UUID

import orjson

from controlplane.core.degradation.levels import Cause, plain
from controlplane.dataplane.policies import Policies, Policy


class Away(NamedTuple):
    """What was known to be away, and the revision of that."""

    revision: int
    causes: tuple[Cause, ...]


def document(policies: Policies | None, away: Away | None) -> dict[str, Any]:
    """Both as JSON values."""
    result: dict[str, Any] = {}
    if policies is not None:
        rows = [_element(one) for one in policies.every()]
        result["told"] = {"dependencies": rows, "version": policies.version}
    if away is not None:
        result["away"] = {"causes": plain(away.causes), "revision": away.revision}
    return result


def policies_in(saved: Any, epoch: UUID) -> Policies | None:
    """The policies in a document; raises ValueError, KeyError or TypeError."""
    if "told" not in saved:
        return None
    found = saved["told"]
    rows = [_policy(each) for each in found["dependencies"]]
    return Policies.of(epoch, _count(found["version"]), rows)


def away_in(saved: Any) -> Away | None:
    """What is known to be away in a document; raises as :func:`policies_in`."""
    if "away" not in saved:
        return None
    found = saved["away"]
    return Away(_count(found["revision"]), tuple(_cause(each) for each in found["causes"]))


def _element(policy: Policy) -> dict[str, Any]:
    return {
        "callee": policy.callee,
        "caller": policy.caller,
        "config": orjson.Fragment(policy.text) if policy.text else None,
        "version": policy.version,
    }


def _policy(element: Any) -> Policy:
    config = element["config"]
    if not isinstance(config, dict | None):
        raise TypeError("a policy is no object")
    text = b"" if config is None else orjson.dumps(config, option=orjson.OPT_SORT_KEYS)
    return Policy(
        _word(element["caller"]), _word(element["callee"]), _count(element["version"]), text
    )


def _cause(element: Any) -> Cause:
    if element["level"] not in (1, 2, 3) or not all(
        isinstance(element[name], str) for name in ("what", "text", "since")
    ):
        raise TypeError("a cause is none")
    return Cause.of(element)


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r} is not a count")
    return value


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value
