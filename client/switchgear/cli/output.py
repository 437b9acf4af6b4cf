"""Printing of switches, approvals and lists, shared by several commands."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from switchgear.cli.api_client import MAX_PAGES, PAGE_SIZE, Document, Query
from switchgear.cli.command_context import CommandContext
from switchgear.cli.formatters import Clock, StyledText, single_line
from switchgear.cli.views import switches as views

Facts = Sequence[tuple[str, object]]

DRY_RUN = StyledText("Dry run: nothing changed. The result would be:", "strong")


def print_switch(call: CommandContext, one: Document, more: Facts = ()) -> None:
    """Print a switch as pairs of name and value, followed by the pairs in `more`."""
    call.screen.line(StyledText(one["id"], "name"), "  ", single_line(views.format_state(one)))
    facts = views.switch_facts(one, call.clock)
    call.screen.facts([("console", call.console.title), *facts, *more])


def print_approval(call: CommandContext, approval: Document) -> None:
    """Print a request that needs a second person's approval."""
    head = StyledText("⚑ Waiting for approval by a second person", "warn")
    call.screen.line(head, f" (request {approval['id']}): {approval['summary']}.")


def print_review(call: CommandContext, found: Document) -> None:
    """Print the request to review an overridden safety rule."""
    head = StyledText("⚠ Someone else must review this", "warn")
    call.screen.line(head, f" (request {found['id']}): {found['summary']}.")


def print_table(
    call: CommandContext,
    found: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    row: Callable[[Mapping[str, Any], Clock], Sequence[object]],
    empty: str | StyledText,
) -> None:
    """Print a list as JSON or as a table.

    `row` returns the cells of one item; `empty` is printed if there are no items.
    """
    if call.print_json(found):
        return
    clock = call.clock
    if found:
        call.screen.table(columns, [row(one, clock) for one in found])
    else:
        call.screen.line(empty)


def get_items(
    call: CommandContext,
    path: str,
    query: Query | None,
    most: int = MAX_PAGES * PAGE_SIZE,
    what: str = "items; use a filter",
) -> list[Document]:
    """Return at most `most` items of a paged list.

    If there are more, print a note, in which `what` names the items.
    """
    page = call.console.get_pages(path, query, most)
    found: list[Document] = page["results"]
    if page["more"]:
        note_truncated(call, len(found), what)
    return found


def sort_by_state(items: Sequence[Document], order: Sequence[str]) -> list[Document]:
    """Return the items sorted by state, in the order of the states in `order`, then by name."""
    ranks = {state: rank for rank, state in enumerate(order)}
    return sorted(items, key=lambda one: (ranks.get(one["state"], len(order)), one["name"]))


def note_truncated(call: CommandContext, most: int, what: str) -> None:
    """Print a note on standard error that there are more than `most` items; `what` names them."""
    call.screen.note(f"More than {most:,} {what}.")
