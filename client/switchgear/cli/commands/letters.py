"""Dead letters: list, show, group, archive, restore."""

import argparse

from switchgear.cli import exits
from switchgear.cli.api_client import url_path
from switchgear.cli.command_context import CommandContext
from switchgear.cli.commands import letter_actions, letter_jobs, output
from switchgear.cli.commands.letter_filters import add_filters, add_server, read_filters
from switchgear.cli.formatting import StyledText
from switchgear.cli.parser import Commands, add_dry_run, add_reason, argument_type, parse_count
from switchgear.cli.views import letters as views

MAX_SHOWN = 50


def register(commands: Commands) -> None:
    dlq = commands.group(
        "dlq",
        "dead letters: list, show, groups, retry, discard, purge, archive, restore, job",
        ("list", list_streams, "every stream of dead letters, the deepest first", add_server),
    )
    dlq.add("show", show, "a stream's letters, or one of them", _show)
    dlq.add("groups", groups, "a stream's letters by what they failed of", _stream)
    letter_actions.register(dlq)
    dlq.add("archive", archive, "what left through the console, newest first", _archive)
    dlq.add("restore", restore, "put a letter from the archive back", _restore)
    letter_jobs.register(dlq)


def list_streams(call: CommandContext) -> int:
    found = call.console.get_list("/dlq/", {"server": call.args.server})
    if call.print_json(found):
        return exits.DONE
    if not found:
        call.screen.line("No stream of dead letters is known.")
        return exits.DONE
    clock = call.clock
    rows = [views.stream_row(one, clock) for one in views.ordered(found)]
    call.screen.table(views.STREAM_COLUMNS, rows)
    return exits.DONE


def show(call: CommandContext) -> int:
    if call.args.stream == views.OUTBOX:
        return _show_failed(call)
    path = f"/dlq/streams{url_path(call.args.stream)}/messages"
    if call.args.id is not None:
        return _show_letter(call, f"{path}{url_path(call.args.id)}/")
    query = {"server": call.args.server, **read_filters(call.args)}
    found = call.console.get_pages(f"{path}/", query, call.args.limit)
    if found["more"]:
        output.note_truncated(call, call.args.limit, "letters: add --limit, or choose")
    empty = "There is no such letter."
    return output.print_table(call, found["results"], views.LETTER_COLUMNS, views.letter_row, empty)


def groups(call: CommandContext) -> int:
    path = f"/dlq/streams{url_path(call.args.stream)}/groups/"
    found = call.console.get(path, {"server": call.args.server})
    if call.print_json(found):
        return exits.DONE
    clock = call.clock
    if found["results"]:
        rows = [views.group_row(one, clock) for one in found["results"]]
        call.screen.table(views.GROUP_COLUMNS, rows)
    else:
        call.screen.line("It has no letters.")
    if not found["complete"]:
        call.screen.note("Not all letters are counted yet: ask again in a moment.")
    return exits.DONE


def archive(call: CommandContext) -> int:
    query = {"server": call.args.server, "stream": call.args.stream}
    found = call.console.get_pages("/dlq/archive/", query, call.args.limit)
    if found["more"]:
        output.note_truncated(call, call.args.limit, "letters that left: add --limit")
    empty = "Nothing has left through the console."
    return output.print_table(
        call, found["results"], views.ARCHIVE_COLUMNS, views.archive_row, empty
    )


def restore(call: CommandContext) -> int:
    body = {"reason": call.args.reason, "dry_run": call.args.dry_run or None}
    path = f"/dlq/archive{url_path(call.args.number)}/restore"
    one = call.console.send("POST", path, body).document
    if not call.print_json(one):
        new = f" as {one['new_id']}" if one.get("new_id") else ""
        said = "Dry run: it would be put back" if one.get("dry_run") else "✔ Put back"
        call.screen.line(
            StyledText(said, "good"), " into ", StyledText(one["stream"], "name"), f"{new}."
        )
    return exits.DONE


def _show_letter(call: CommandContext, path: str) -> int:
    one = call.console.get(path, {"server": call.args.server})
    if call.print_json(one):
        return exits.DONE
    call.screen.line(StyledText(one["stream"], "name"), f"  {one['id']}")
    call.screen.facts(views.letter_facts(one, call.clock))
    for title, pairs in (
        ("Fields, as they may be shown", list(views.fields(one))),
        ("What it went through", list(views.history(one, call.clock))),
    ):
        if pairs:
            call.screen.blank_line()
            call.screen.line(StyledText(title, "strong"))
            call.screen.facts(pairs)
    return exits.DONE


def _show_failed(call: CommandContext) -> int:
    """The outbox: messages of the console's own that could not be delivered."""
    wanted = call.args.id
    page = call.console.get_pages("/dlq/outbox/", None, *([] if wanted else [call.args.limit]))
    found = page["results"]
    if wanted is not None:
        found = [one for one in found if str(one["id"]) == wanted]
        if not found:
            said = f"No message {wanted} of the outbox failed for good. All: dlq show outbox"
            raise exits.make_exit(exits.NOT_FOUND, "no-letter", said)
    elif page["more"]:
        output.note_truncated(call, call.args.limit, "messages: add --limit")
    if call.print_json(found):
        return exits.DONE
    if found:
        call.screen.table(
            views.FAILED_COLUMNS, [views.failed_row(one, call.clock) for one in found]
        )
    else:
        call.screen.line(StyledText("✔ No message failed for good.", "good"))
    return exits.DONE


def _stream(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stream", metavar="STREAM", help="axiom:dlq:events, or outbox")
    add_server(parser)


def _show(parser: argparse.ArgumentParser) -> None:
    _stream(parser)
    parser.add_argument("id", nargs="?", metavar="ID", help="of one letter, to see all of it")
    add_filters(parser)
    _limit(parser)


def _archive(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stream", nargs="?", metavar="STREAM")
    add_server(parser)
    _limit(parser)


def _restore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("number", type=int, metavar="NUMBER", help="as `dlq archive` shows it")
    add_reason(parser, "why it has to come back")
    add_dry_run(parser)


def _limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit",
        type=argument_type(parse_count),
        default=MAX_SHOWN,
        metavar="N",
        help=f"at most so many; {MAX_SHOWN}",
    )
