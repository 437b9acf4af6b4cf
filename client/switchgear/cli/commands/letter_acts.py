"""Retrying, discarding and purging dead letters: some by their ids, or all that are chosen."""

import argparse
from collections.abc import Callable
from typing import Any

from switchgear.cli import exits
from switchgear.cli.call import Call
from switchgear.cli.commands import letter_jobs, showing
from switchgear.cli.commands.letter_choice import choice, chosen, server
from switchgear.cli.console import Document, place
from switchgear.cli.parser import Commands, dry_run, of_type, rate, reason
from switchgear.cli.views import letters as views
from switchgear.cli.words import Part

WHY = "what was wrong, and what has changed since"
MORE = (
    "By ids it is done at once; those that an option chooses, or --all, are done by a job, at a"
    " bounded rate."
)


def register(dlq: Commands) -> None:
    for action, said in (
        ("retry", "put letters back into the stream they came from"),
        ("discard", "take letters away; the archive keeps them for 30 days"),
        ("purge", "archive all that are chosen, after a second person's approval"),
    ):
        dlq.add(action, _acting(action), said, _options(action), MORE if action != "purge" else "")


def _acting(action: str) -> Callable[[Call], int]:
    def act(call: Call) -> int:
        ids, given = getattr(call.args, "ids", []), chosen(call.args)
        if bool(ids) + bool(given) + call.args.all != 1:
            said = "Say which letters: by id, by an option such as --fingerprint, or --all."
            if action == "purge":
                said = "Say which letters: by an option such as --fingerprint, or --all."
            raise exits.ended(exits.USAGE, "usage", said)
        if not ids:
            return _in_bulk(call, action, given)
        return _by_ids(call, action, ids)

    return act


def _by_ids(call: Call, action: str, ids: list[str]) -> int:
    """One after the other, up to the first that fails; those that were done are told."""
    documents: list[Document] = []
    try:
        for one in ids:
            documents.append(_one(call, action, one))
    finally:
        if documents:
            call.show(documents if len(ids) > 1 else documents[0])
    return exits.DONE


def _one(call: Call, action: str, letter: str) -> Document:
    """One letter; it is told at once, as the next one may fail."""
    body: dict[str, Any] = {"reason": call.args.reason, "dry_run": call.args.dry_run or None}
    query = {"server": call.args.server}
    if call.args.stream == views.OUTBOX:
        path, query = f"/dlq/outbox{place(letter)}/{action}", {"server": None}
    else:
        path = f"/dlq/streams{place(call.args.stream)}/messages{place(letter)}/{action}"
        if edits := getattr(call.args, "edit", None):
            body["edited_fields"] = dict(edits)
    one: Document = call.console.send("POST", path, body, query).document
    if not call.screen.as_json:
        _tell(call, action, one)
    return one


def _tell(call: Call, action: str, one: Document) -> None:
    if one.get("dry_run"):
        call.screen.line(Part(f"Dry run: it would {action} {one['id']}.", "strong"))
        return
    done = "retried" if action == "retry" else "discarded"
    new = f" as {one['new_id']}" if one.get("new_id") else ""
    number = one.get("departure")
    back = f"; to put it back: switchgear dlq restore {number} --reason …" if number else ""
    again = " (it had been done before)" if one.get("repeated") else ""
    call.screen.line(Part("✔ ", "good"), f"{one['id']} {done}{new}{again}{back}")


def _in_bulk(call: Call, action: str, given: dict[str, str]) -> int:
    args = call.args
    if args.stream == views.OUTBOX:
        raise exits.ended(exits.USAGE, "usage", "Messages of the outbox are named by their ids.")
    body = {
        "action": action,
        "stream": args.stream,
        "server": args.server,
        "filter": given or None,
        "rate_per_second": args.rate,
        "reason": args.reason,
        "dry_run": args.dry_run or None,
    }
    document = call.console.send("POST", "/dlq/jobs/", body).document
    approval = document.get("approval")
    if isinstance(approval, dict):
        if not call.show(document):
            showing.waits(call, approval)
        return exits.WAITS
    if args.dry_run:
        if not call.show(document):
            call.screen.line(Part("Dry run: nothing was done.", "strong"))
            call.screen.facts(views.plan(document))
        return exits.DONE
    if getattr(args, "follow", False):
        return letter_jobs.follow_one(call, document["id"], lambda: _tell_job(call, document))
    _tell_job(call, document)
    return exits.DONE


def _tell_job(call: Call, document: Document) -> None:
    if not call.show(document):
        letter_jobs.show_one(call, document)
        hint = f"To watch it: switchgear dlq job follow {document['id']}"
        call.screen.line(Part(hint, "quiet"))


def _options(action: str) -> Callable[[argparse.ArgumentParser], None]:
    def options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("stream", metavar="STREAM", help="axiom:dlq:events, or outbox")
        if action != "purge":
            parser.add_argument("ids", nargs="*", metavar="ID", help="letters, by their ids")
        reason(parser, WHY)
        if action == "retry":
            parser.add_argument(
                "--edit",
                action="append",
                type=of_type(_edit),
                metavar="FIELD=VALUE",
                help="send it with this value instead; FIELD= for none. Again for another",
            )
        choice(parser)
        parser.add_argument("--all", action="store_true", help="every letter there is now")
        parser.add_argument(
            "--rate", type=of_type(rate), metavar="N", help="at most so many a second; 50"
        )
        server(parser)
        dry_run(parser)
        if action != "purge":
            parser.add_argument("--follow", action="store_true", help="until the job is over")

    return options


def _edit(text: str) -> tuple[str, str | None]:
    """Nothing behind the sign takes the field out; `FIELD=""` makes it empty."""
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise ValueError("write FIELD=VALUE")
    if value == '""':
        return name, ""
    return name, value or None
