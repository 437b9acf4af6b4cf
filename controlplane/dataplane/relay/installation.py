"""Installs the contents of bundles in a relay's state, as the refresher does on data planes."""

from dataclasses import replace

import structlog

from controlplane.dataplane.memory.order_set import ClosedOrders
from controlplane.dataplane.memory.served_copy import Copy
from controlplane.dataplane.state import State

from .bundle import BundleHead
from .difference import ReceivedBundle

log = structlog.get_logger(__name__)


def install_bundle(state: State, received: ReceivedBundle, confirmed_at: float) -> None:
    """Serve a bundle that was true at `confirmed_at` (monotonic).

    It must be allowed to follow the present one. Parts that are older than the present ones, as
    another upstream may send them, are left out.
    """
    head, contents = received.head, received.contents
    copy = _make_copy(state, received)
    _log_new_epoch(state, head)
    state.measure_propagation(copy)
    settled = state.orders.settled | contents.settled
    if settled != state.orders.settled:
        state.orders = replace(state.orders, settled=settled)
    closed = _keep_closed(state, head, contents.closed)
    if copy is not state.published or closed != state.orders.closed:
        state.install_copy(copy, confirmed_at, closed)
    state.left_epochs |= head.left_epochs
    if state.public_keys != head.keys:
        state.install_keys((), head.keys)
    news = (contents.tokens, contents.codes, contents.owners)
    present = (state.tokens, state.codes, state.owners)
    if any(one is not other for one, other in zip(news, present, strict=True)):
        state.install_tokens(head.revision, *news)
    state.revision = head.revision
    if head.registrations > state.registrations:
        state.install_known(head.registrations, contents.known)
    if head.degradation > state.degradation:
        state.install_causes(head.degradation, contents.causes)
    _install_policies(state, received)


def confirm_bundle(
    state: State, received: ReceivedBundle, at: float, policies_at: float | None
) -> None:
    """Record that the upstream confirmed the installed bundle; times are monotonic.

    `policies_at` is None if it has confirmed no policies.
    """
    if not state.heard_database:
        state.changed.set()  # What was not confirmed before has to be saved.
    state.confirm(at)
    if policies_at is not None and state.policies is received.contents.policies:
        state.confirm_policies(policies_at)


def _make_copy(state: State, received: ReceivedBundle) -> Copy:
    head, contents, present = received.head, received.contents, state.published
    snapshot = contents.snapshot
    if (
        present is not None
        and present.body == snapshot.body
        and present.drill_snapshot is contents.drills
        and present.is_kept == head.is_kept
    ):
        if present.signature == head.snapshot_signature:
            return present
        return present.with_signature(head.snapshot_signature)
    return Copy.render(
        head.publication,
        snapshot.entries.values(),
        present,
        drill_snapshot=contents.drills,
        is_kept=head.is_kept,
        orders=snapshot.orders,
        elements=snapshot.elements,
        body=snapshot.body,
        signature=head.snapshot_signature,
    )


def _keep_closed(state: State, head: BundleHead, closed: ClosedOrders) -> ClosedOrders:
    """Return the closed orders, and those of this epoch that the upstream has forgotten.

    An upstream forgets orders that were closed long ago, perhaps earlier than this relay.
    """
    published, orders = state.published, state.orders
    if published is None or published.publication.epoch != head.publication.epoch:
        return closed
    kept = {key: order for key, order in orders.closed.items() if key in orders.orders}
    return {**kept, **closed}


def _install_policies(state: State, received: ReceivedBundle) -> None:
    theirs, ours = received.contents.policies, state.policies
    if theirs is None or theirs is ours:
        return
    if ours is None or ours.epoch != theirs.epoch or ours.version <= theirs.version:
        state.install_policies(theirs)


def _log_new_epoch(state: State, head: BundleHead) -> None:
    if state.published is None:
        return
    left, begun = state.published.publication.epoch, head.publication.epoch
    if left != begun:
        log.warning("dataplane.epoch_changed", left=str(left), begun=str(begun))
