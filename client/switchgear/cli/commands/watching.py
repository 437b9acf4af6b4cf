"""`watch`: what happens, as it happens, a line each."""

import argparse
import importlib.util

from switchgear.cli import exits
from switchgear.cli.call import Call
from switchgear.cli.live.board import Board
from switchgear.cli.live.lines import TOPICS
from switchgear.cli.parser import Commands, of_type

INSTALL = (
    "Watching live needs one more package: pip install 'switchgear[cli]'. Or add --poll, to ask"
    " every 5 seconds."
)


def register(commands: Commands) -> None:
    commands.add(
        "watch",
        watch,
        "what happens, as it happens",
        _options,
        "First what is not normal now, then a line for each change, until Ctrl-C. With --json, a"
        " document a line: the console's live messages, and {topic, event: refetched, at, data}"
        " for what was read anew; whether it is live stands on standard error, as {note}. Where"
        " sockets are refused on the way, it asks every 5 seconds.",
    )


def watch(call: Call) -> int:
    if not call.args.poll and importlib.util.find_spec("websockets") is None:
        raise exits.ended(exits.USAGE, "not-installed", INSTALL)
    topics = list(dict.fromkeys(call.args.topics)) or list(TOPICS)
    board = Board(call, topics, chosen=bool(call.args.topics))
    from switchgear.cli.live.following import Follower

    Follower(call, board).run(sockets=not call.args.poll)
    return exits.DONE


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "topics",
        nargs="*",
        metavar="TOPIC",
        type=of_type(_topic),
        help=f"{', '.join(TOPICS)}; all if none is said",
    )
    parser.add_argument("--poll", action="store_true", help="ask every 5 s, without a socket")
    parser.set_defaults(by_hand=True)


def _topic(text: str) -> str:
    if text not in TOPICS:
        raise ValueError(f"write one of {', '.join(TOPICS)}")
    return text
