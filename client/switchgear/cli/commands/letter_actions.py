"""Retry, discard and purge dead letters, by id or in bulk."""

import argparse
from collections.abc import Callable
from typing import Any

from switchgear.cli import exits
from switchgear.cli.api_client import Document, url_path
from switchgear.cli.command_context import CommandContext
from switchgear.cli.commands import letter_jobs, output
from switchgear.cli.commands.letter_filters import add_filters, add_server, read_filters
from switchgear.cli.formatting import StyledText
from switchgear.cli.parser import Commands, add_dry_run, add_reason, argument_type, parse_rate
from switchgear.cli.views import letters as views

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
        dlq.add(
            action,
            _make_command(action),
            said,
            _make_options(action),
            MORE if action != "purge" else "",
        )


def _make_command(action: str) -> Callable[[CommandContext], int]:
    def act(call: CommandContext) -> int:
        ids, given = getattr(call.args, "ids", []), read_filters(call.args)
        if bool(ids) + bool(given) + call.args.all != 1:
            said = "Say which letters: by id, by an option such as --fingerprint, or --all."
            if action == "purge":
                said = "Say which letters: by an option such as --fingerprint, or --all."
            raise exits.make_exit(exits.USAGE, "usage", said)
        if not ids:
            return _act_in_bulk(call, action, given)
        return _act_by_ids(call, action, ids)

    return act


def _act_by_ids(call: CommandContext, action: str, ids: list[str]) -> int:
    """Act on one letter after the other, up to the first failure; print what was done."""
    documents: list[Document] = []
    try:
        for one in ids:
            documents.append(_act_on_letter(call, action, one))
    finally:
        if documents:
            call.print_json(documents if len(ids) > 1 else documents[0])
    return exits.DONE


def _act_on_letter(call: CommandContext, action: str, letter: str) -> Document:
    """Act on one letter and print it at once, as the next one may fail."""
    body: dict[str, Any] = {"reason": call.args.reason, "dry_run": call.args.dry_run or None}
    query = {"server": call.args.server}
    if call.args.stream == views.OUTBOX:
        path, query = f"/dlq/outbox{url_path(letter)}/{action}", {"server": None}
    else:
        path = f"/dlq/streams{url_path(call.args.stream)}/messages{url_path(letter)}/{action}"
        if edits := getattr(call.args, "edit", None):
            body["edited_fields"] = dict(edits)
    one: Document = call.console.send("POST", path, body, query).document
    if not call.screen.as_json:
        _print_result(call, action, one)
    return one


def _print_result(call: CommandContext, action: str, one: Document) -> None:
    if one.get("dry_run"):
        call.screen.line(StyledText(f"Dry run: it would {action} {one['id']}.", "strong"))
        return
    done = "retried" if action == "retry" else "discarded"
    new = f" as {one['new_id']}" if one.get("new_id") else ""
    number = one.get("departure")
    back = f"; to put it back: switchgear dlq restore {number} --reason …" if number else ""
    again = " (it had been done before)" if one.get("repeated") else ""
    call.screen.line(StyledText("✔ ", "good"), f"{one['id']} {done}{new}{again}{back}")


def _act_in_bulk(call: CommandContext, action: str, given: dict[str, str]) -> int:
    args = call.args
    if args.stream == views.OUTBOX:
        raise exits.make_exit(
            exits.USAGE, "usage", "Messages of the outbox are named by their ids."
        )
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
        if not call.print_json(document):
            output.print_approval(call, approval)
        return exits.NEEDS_APPROVAL
    if args.dry_run:
        if not call.print_json(document):
            call.screen.line(StyledText("Dry run: nothing was done.", "strong"))
            call.screen.facts(views.plan(document))
        return exits.DONE
    if getattr(args, "follow", False):
        return letter_jobs.follow_job(call, document["id"], lambda: _print_job(call, document))
    _print_job(call, document)
    return exits.DONE


def _print_job(call: CommandContext, document: Document) -> None:
    if not call.print_json(document):
        letter_jobs.print_job(call, document)
        hint = f"To watch it: switchgear dlq job follow {document['id']}"
        call.screen.line(StyledText(hint, "quiet"))


def _make_options(action: str) -> Callable[[argparse.ArgumentParser], None]:
    def options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("stream", metavar="STREAM", help="axiom:dlq:events, or outbox")
        if action != "purge":
            parser.add_argument("ids", nargs="*", metavar="ID", help="letters, by their ids")
        add_reason(parser, WHY)
        if action == "retry":
            parser.add_argument(
                "--edit",
                action="append",
                type=argument_type(_parse_edit),
                metavar="FIELD=VALUE",
                help="send it with this value instead; FIELD= for none. Again for another",
            )
        add_filters(parser)
        parser.add_argument("--all", action="store_true", help="every letter there is now")
        parser.add_argument(
            "--rate",
            type=argument_type(parse_rate),
            metavar="N",
            help="at most so many a second; 50",
        )
        add_server(parser)
        add_dry_run(parser)
        if action != "purge":
            parser.add_argument("--follow", action="store_true", help="until the job is over")

    return options


def _parse_edit(text: str) -> tuple[str, str | None]:
    """Return the field and its value: None without a value, which removes it; empty for `""`."""
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise ValueError("write FIELD=VALUE")
    if value == '""':
        return name, ""
    return name, value or None
