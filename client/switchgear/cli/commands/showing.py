"""What many commands end with: one switch in words, and lists."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from switchgear.cli import exits
from switchgear.cli.call import Call
from switchgear.cli.console import Document, Query
from switchgear.cli.views import switches as views
from switchgear.cli.words import Clock, Part, flat

Facts = Sequence[tuple[str, object]]

DRY_RUN = Part("Dry run: nothing was done. It would be so:", "strong")


def switch(call: Call, one: Document, more: Facts = ()) -> None:
    """`more` are facts that stand below its own."""
    call.screen.line(Part(one["id"], "name"), "  ", flat(views.state(one)))
    call.screen.facts([("console", call.console.where), *views.facts(one, call.clock), *more])


def waits(call: Call, approval: Document) -> None:
    """What needs a second person."""
    head = Part("⚑ Waits for a second person", "warn")
    call.screen.line(head, f" (request {approval['id']}): {approval['summary']}.")


def review(call: Call, found: Document) -> None:
    """What somebody else has to sign, as a rule was overridden."""
    head = Part("⚠ Has to be reviewed by somebody else", "warn")
    call.screen.line(head, f" (request {found['id']}): {found['summary']}.")


def table(
    call: Call,
    found: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    row: Callable[[Mapping[str, Any], Clock], Sequence[object]],
    empty: str | Part,
) -> int:
    """A list: the documents as they are, or a row for each of them; `empty` if there is none."""
    if call.show(found):
        return exits.DONE
    clock = call.clock
    if found:
        call.screen.table(columns, [row(one, clock) for one in found])
    else:
        call.screen.line(empty)
    return exits.DONE


def whole(call: Call, path: str, query: Query) -> list[Document]:
    """A list in pages, to its end; says so where that is too far."""
    page = call.console.pages(path, query)
    found: list[Document] = page["results"]
    if page["more"]:
        cut(call, len(found), "of these: choose")
    return found


def cut(call: Call, most: int, what: str) -> None:
    """That a list has an end where there is more: on standard error, with documents too."""
    call.screen.note(f"There are more than {most:,} {what}.")
