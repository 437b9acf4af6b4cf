"""The command `watch`, which prints a line for each change that the console reports."""

import importlib.util

from switchgear.cli import exits
from switchgear.cli.command_context import CommandContext
from switchgear.cli.live.resource_lines import TOPICS
from switchgear.cli.live.topic_board import TopicBoard
from switchgear.cli.parser import Commands, option

INSTALL_HINT = (
    "Watching live needs one more package: pip install 'switchgear[cli]'. Or add --poll, to ask"
    " every 5 seconds."
)


def register(commands: Commands) -> None:
    commands.add(
        "watch",
        watch_console,
        "what happens, as it happens",
        option(
            "topics",
            nargs="*",
            metavar="TOPIC",
            parse=_parse_topic,
            help=f"{', '.join(TOPICS)}; all if none is said",
        ),
        option("--poll", action="store_true", help="ask every 5 s, without a socket"),
        lambda parser: parser.set_defaults(by_hand=True),
        details="First what is not normal now, then a line for each change, until Ctrl-C. With"
        " --json, a document a line: the console's live messages, and {topic, event: refetched,"
        " at, data} for what was read anew; whether it is live stands on standard error, as"
        " {note}. Where sockets are refused on the way, it asks every 5 seconds.",
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
        raise ValueError(f"write one of {', '.join(TOPICS)}")
    return text
