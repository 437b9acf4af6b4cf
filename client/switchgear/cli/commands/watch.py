"""The command `watch`, which prints a line for each change that the console reports."""

import importlib.util

from switchgear.cli import exits
from switchgear.cli.command_context import CommandContext
from switchgear.cli.live.resource_lines import TOPICS
from switchgear.cli.live.topic_board import TopicBoard
from switchgear.cli.parser import Commands, option

INSTALL_HINT = (
    "Live updates need the extra switchgear[cli]: in a checkout, pip install './client[cli]'."
    " Or add --poll to poll every 5 seconds."
)


def register(commands: Commands) -> None:
    commands.add(
        "watch",
        watch_console,
        "print changes as they happen",
        option(
            "topics",
            nargs="*",
            metavar="TOPIC",
            parse=_parse_topic,
            help=f"{', '.join(TOPICS)} (default: all)",
        ),
        option("--poll", action="store_true", help="poll every 5 s instead of using a WebSocket"),
        lambda parser: parser.set_defaults(by_hand=True),
        details=(
            "Prints what is not normal now, then a line for each change, until Ctrl-C. With --json,"
            " prints one JSON document per line: the console's live messages, and {topic, event:"
            " refetched, at, data} for resources that were read again. Connection changes go to"
            " standard error as {note}. If WebSockets are refused, polls every 5 seconds."
        ),
    )


def watch_console(call: CommandContext) -> None:
    if not call.args.poll and importlib.util.find_spec("websockets") is None:
        raise exits.make_exit(exits.USAGE, "not-installed", INSTALL_HINT)
    topics = list(dict.fromkeys(call.args.topics)) or list(TOPICS)
    board = TopicBoard(call, topics, chosen=bool(call.args.topics))
    from switchgear.cli.live.watcher import Watcher

    Watcher(call, board).run(sockets=not call.args.poll)


def _parse_topic(text: str) -> str:
    if text not in TOPICS:
        raise ValueError(f"use one of {', '.join(TOPICS)}")
    return text
