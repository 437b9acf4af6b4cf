"""Commands for streams of dead letters and their archive."""

from switchgear.cli import exits, output
from switchgear.cli.api_client import url_path
from switchgear.cli.command_context import CommandContext
from switchgear.cli.commands import letter_actions, letter_jobs
from switchgear.cli.commands.letter_actions import SERVER, STREAM, read_filters
from switchgear.cli.formatters import StyledText
from switchgear.cli.parser import DRY_RUN, Commands, option, parse_count, reason_option
from switchgear.cli.views import letters as views

MAX_SHOWN = 50


def register(commands: Commands) -> None:
    dlq = commands.add_group(
        "dlq",
        "dead letters: list, show, groups, retry, discard, purge, archive, restore, job",
        list_streams,
        "list streams of dead letters, largest first",
        SERVER,
    )
    limit = option(
        "--limit",
        parse=parse_count,
        default=MAX_SHOWN,
        metavar="N",
        help=f"maximum number (default: {MAX_SHOWN})",
    )
    dlq.add(
        "show",
        show_letters,
        "show letters of a stream, or one letter in full",
        STREAM,
        SERVER,
        option("id", nargs="?", metavar="ID", help="letter ID, to show it in full"),
        letter_actions.add_filters,
        limit,
    )
    dlq.add("groups", list_groups, "group a stream's letters by error", STREAM, SERVER)
    letter_actions.register(dlq)
    dlq.add(
        "archive",
        list_archive,
        "list letters removed through the console, newest first",
        option("stream", nargs="?", metavar="STREAM"),
        SERVER,
        limit,
    )
    dlq.add(
        "restore",
        restore_letter,
        "restore a letter from the archive",
        option("number", type=int, metavar="NUMBER", help="number from `dlq archive`"),
        reason_option("why the letter is needed again"),
        DRY_RUN,
    )
    letter_jobs.register(dlq)


def list_streams(call: CommandContext) -> None:
    found = call.console.get("/dlq/", {"server": call.args.server}, kind=list)
    if not call.print_json(found):
        empty = "No streams of dead letters."
        # In the console's order, but the outbox last if it is empty.
        streams = sorted(found, key=lambda one: one["name"] == views.OUTBOX and not one["depth"])
        output.print_table(call, streams, views.STREAM_COLUMNS, views.stream_row, empty)


def show_letters(call: CommandContext) -> None:
    path = f"/dlq/streams{url_path(call.args.stream)}/messages"
    if call.args.stream == views.OUTBOX:
        _show_failed(call)
    elif call.args.id is not None:
        _show_letter(call, f"{path}{url_path(call.args.id)}/")
    else:
        query = {"server": call.args.server, **read_filters(call.args)}
        what, empty = "letters; use --limit or a filter", "No letters match."
        found = output.get_items(call, f"{path}/", query, call.args.limit, what)
        output.print_table(call, found, views.LETTER_COLUMNS, views.letter_row, empty)


def list_groups(call: CommandContext) -> None:
    path = f"/dlq/streams{url_path(call.args.stream)}/groups/"
    found = call.console.get(path, {"server": call.args.server})
    if call.print_json(found):
        return
    empty = "The stream has no letters."
    output.print_table(call, found["results"], views.GROUP_COLUMNS, views.group_row, empty)
    if not found["complete"]:
        call.screen.note("Letters are still being counted; the numbers are incomplete.")


def list_archive(call: CommandContext) -> None:
    query = {"server": call.args.server, "stream": call.args.stream}
    what, empty = "removed letters; use --limit", "No letters were removed through the console."
    found = output.get_items(call, "/dlq/archive/", query, call.args.limit, what)
    output.print_table(call, found, views.ARCHIVE_COLUMNS, views.archive_row, empty)


def restore_letter(call: CommandContext) -> None:
    path = f"/dlq/archive{url_path(call.args.number)}/restore"
    one = call.send("POST", path, {"reason": call.args.reason})
    if not call.print_json(one):
        new = f" as {one['new_id']}" if one.get("new_id") else ""
        text = "Dry run: would be restored" if one.get("dry_run") else "✔ Restored"
        stream = StyledText(one["stream"], "name")
        call.screen.line(StyledText(text, "good"), " into ", stream, f"{new}.")


def _show_letter(call: CommandContext, path: str) -> None:
    one = call.console.get(path, {"server": call.args.server})
    if call.print_json(one):
        return
    call.screen.line(StyledText(one["stream"], "name"), f"  {one['id']}")
    call.screen.facts(views.letter_facts(one, call.clock))
    for title, pairs in (
        ("Fields (redacted)", list(views.letter_fields(one))),
        ("History", list(views.letter_history(one, call.clock))),
    ):
        if pairs:
            call.screen.blank_line()
            call.screen.line(StyledText(title, "strong"))
            call.screen.facts(pairs)


def _show_failed(call: CommandContext) -> None:
    """Print the console's own messages that could not be delivered."""
    path, message_id = "/dlq/outbox/", call.args.id
    if message_id is None:
        found = output.get_items(call, path, None, call.args.limit, "messages; use --limit")
    else:
        messages = call.console.get_pages(path)["results"]
        found = [one for one in messages if str(one["id"]) == message_id]
        if not found:
            text = (
                f"The outbox has no failed message {message_id}. To list them: switchgear dlq show"
                " outbox"
            )
            raise exits.make_exit(exits.NOT_FOUND, "no-letter", text)
    empty = StyledText("✔ No failed messages.", "good")
    output.print_table(call, found, views.FAILED_COLUMNS, views.failed_row, empty)
