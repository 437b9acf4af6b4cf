"""One switch in words, for every command that ends with one."""

from collections.abc import Sequence

from switchgear.cli.call import Call
from switchgear.cli.console import Document, Query
from switchgear.cli.views import switches as views
from switchgear.cli.words import Part, flat

Facts = Sequence[tuple[str, object]]

DRY_RUN = Part("Dry run: nothing was done. It would be so:", "strong")


def switch(call: Call, one: Document, more: Facts = ()) -> None:
    """`more` are facts that stand below its own."""
    call.screen.line(Part(one["id"], "name"), "  ", flat(views.state(one)))
    call.screen.facts([*views.facts(one, call.clock), *more])


def waits(call: Call, approval: Document) -> None:
    """What needs a second person."""
    head = Part("⚑ Waits for a second person", "warn")
    call.screen.line(head, f" (request {approval['id']}): {approval['summary']}.")


def review(call: Call, found: Document) -> None:
    """What somebody else has to sign, as a rule was overridden."""
    head = Part("⚠ Has to be reviewed by somebody else", "warn")
    call.screen.line(head, f" (request {found['id']}): {found['summary']}.")


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
