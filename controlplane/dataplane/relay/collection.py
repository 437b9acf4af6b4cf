"""Collection of a data plane's state into a bundle; unchanged parts keep their objects. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import orjson

from controlplane.core.degradation_levels import to_json
from controlplane.dataplane.memory.credentials import CodeTable, TokenTable
from controlplane.dataplane.memory.json_elements import (
    closed_order_element,
    code_element,
    credential_element,
    policy_element,
)
from controlplane.dataplane.memory.order_set import ClosedOrders
from controlplane.dataplane.memory.ownership import OwnershipTable
from controlplane.dataplane.memory.policies import Policies
from controlplane.dataplane.memory.served_copy import Copy, DrillSnapshot
from controlplane.dataplane.state import State
from switches.snapshot import render_entry

from . import bundle
from .bundle import Bundle, BundleHead, Part

FRAME = ""
"""Key of the texts before and after the elements of the snapshot, in the part `snapshot`."""
MARKS = ""
"""Key of the marks of instances that take part, in the part `drills`."""
SETTLED = b"null"
"""Value of a settled order, in the part `closed_orders`."""
ALL_CAUSES = ""
"""Key of all causes, in the part `causes`."""

_FIRST_ELEMENT = b'"switches":['

Values = Mapping[str, bytes]


def collect(state: State, before: Bundle | None) -> Bundle | None:
    """Return the bundle of `state`; None until snapshot and tokens are loaded.

    `before` is the last one, whose unchanged parts are reused.
    """
    copy, tokens = state.published, state.tokens
    if copy is None or tokens is None:
        return None
    policies = state.policies
    if policies is not None and policies.epoch != copy.publication.epoch:
        policies = None
    causes = state.causes if state.degradation >= 0 else ()
    known = state.known if state.registrations >= 0 else frozenset()
    sources: dict[str, tuple[Callable[..., Values], Sequence[object]]] = {
        bundle.SNAPSHOT: (_snapshot_values, (copy,)),
        bundle.DRILLS: (_drill_values, (copy.drill_snapshot,)),
        bundle.CLOSED_ORDERS: (_order_values, (state.orders.closed, state.orders.settled)),
        bundle.TOKENS: (_token_values, (tokens,)),
        bundle.CODES: (_code_values, (state.codes,)),
        bundle.OWNERS: (_owner_values, (state.owners,)),
        bundle.KNOWN: (_known_values, (known,)),
        bundle.POLICIES: (partial(_policy_values, before), (policies,)),
        bundle.CAUSES: (_cause_values, (causes,)),
    }
    head = BundleHead(
        publication=copy.publication,
        snapshot_signature=copy.signature,
        is_kept=copy.is_kept,
        revision=state.revision,
        registrations=state.registrations,
        policies=-1 if policies is None else policies.version,
        policies_at=None if policies is None else policies.changed_at,
        degradation=state.degradation,
        left_epochs=state.left_epochs,
        keys=tuple(state.public_keys),
    )
    parts = {
        name: _reuse_part(name, before, source) or _build_part(name, before, build(*source))
        for name, (build, source) in sources.items()
    }
    return Bundle(head, parts, {name: source for name, (_, source) in sources.items()})


def _reuse_part(name: str, before: Bundle | None, source: Sequence[object]) -> Part | None:
    if before is None or (known := before.sources.get(name)) is None:
        return None
    return before.parts.get(name) if all(map(_is_same, known, source)) else None


def _is_same(one: object, other: object) -> bool:
    return one is other


def _build_part(name: str, before: Bundle | None, values: Values) -> Part:
    present = None if before is None else before.parts.get(name)
    return present if present is not None and present.values == values else Part.build(values)


def _snapshot_values(copy: Copy) -> Values:
    # The exact bytes around the elements, so that relays of other releases serve the same body.
    elements = b",".join(copy.elements.values())
    start, found, end = copy.body.partition(b"%b%b]" % (_FIRST_ELEMENT, elements))
    if not found:
        raise ValueError("the snapshot's body doesn't contain its elements")
    frame = [(start + _FIRST_ELEMENT).decode(), "]" + end.decode()]
    return {FRAME: orjson.dumps(frame), **copy.elements}


def _drill_values(drills: DrillSnapshot | None) -> Values:
    if drills is None:
        return {}
    marks = {"names": sorted(drills.marks.names), "services": sorted(drills.marks.services)}
    return {
        MARKS: orjson.dumps(marks),
        **{entry.id: render_entry(entry) for entry in drills.drilled},
    }


def _order_values(closed: ClosedOrders, settled: Iterable[object]) -> Values:
    return {
        **{str(key): SETTLED for key in settled},
        **{str(key): _dump(closed_order_element(key, order)) for key, order in closed.items()},
    }


def _token_values(tokens: TokenTable) -> Values:
    return {
        prefix.decode("ascii"): _dump(credential_element(prefix, credential, with_owner=True))
        for prefix, credential in tokens.items()
    }


def _code_values(codes: CodeTable) -> Values:
    return {name: _dump(code_element(name, code)) for name, code in codes.items()}


def _owner_values(owners: OwnershipTable) -> Values:
    return {pattern: _dump(chain) for pattern, chain in owners.chains.items()}


def _known_values(known: Iterable[str]) -> Values:
    return dict.fromkeys(known, b"")


def _policy_values(before: Bundle | None, policies: Policies | None) -> Values:
    """Return the lines of policies; those of callers without changes are reused from `before`."""
    if policies is None:
        return {}
    known: Policies | None = None
    if before is not None and (source := before.sources.get(bundle.POLICIES)):
        known = cast(Policies | None, source[0])
    values: dict[str, bytes] = {}
    if before is not None and known is not None:
        if known.by_caller.keys() <= policies.by_caller.keys():
            values.update(before.parts[bundle.POLICIES].values)
        else:
            known = None
    for caller, callees in policies.by_caller.items():
        lines = {} if known is None else known.by_caller.get(caller, {})
        if lines is callees:
            continue
        for callee in lines.keys() - callees.keys():
            del values[f"{caller}->{callee}"]
        for callee, one in callees.items():
            values[f"{caller}->{callee}"] = _dump(policy_element(one))
    return values


def _cause_values(causes: Sequence[Any]) -> Values:
    return {ALL_CAUSES: _dump(to_json(causes))} if causes else {}


def _dump(element: Any) -> bytes:
    return orjson.dumps(element, option=orjson.OPT_SORT_KEYS)
