"""The command line: parser, groups of commands, and types of options."""

import argparse
import functools
import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from switchgear import __version__
from switchgear.cli import exits
from switchgear.cli.formatters import duration_seconds
from switchgear.evaluation.snapshot import resolve_switch_id

Run = Callable[[Any], int | None]
"""A function that runs a command and returns its exit code; None means `exits.DONE`."""
Option = Callable[[argparse._ActionsContainer], object]
"""A function that adds one argument, or several that belong together, to a parser or a group of
arguments."""

ABOUT = """\
Use the Switchgear console from a shell: see what is stopped, stop it, release it.

Set SWITCHGEAR_URL and SWITCHGEAR_TOKEN, or use --url and --token-file. Never put a token
on the command line. Write a switch as global, segment:finance, feature:chat or
experiment:new-ranker, and a breaker as 'core->oracle' (in quotes) or core/oracle."""

EXAMPLES = """\
examples:
  switchgear status
  switchgear engage segment:finance --reason "Wrong figures in P&L answers" --for 4h --wait
  switchgear kill segment:finance --reason "Wrong figures" --code    (the console is down)
  switchgear release segment:finance --reason "Fixed by deploy 412" --plan 5,25,100 --follow
  switchgear dlq retry axiom:dlq:events --fingerprint 3f2a… --reason "Fixed" --follow
  switchgear watch switches breakers"""

PIPES = (
    "Closing the pipe early, as `| head` does, doesn't change the exit code; `watch` then exits"
    " with 0."
)
GROUPS = ("switches", "kill", "ramps", "breakers", "letters", "slos", "config", "watch")


class UsageError(Exception):
    """An invalid command line; `usage` is the syntax of the command."""

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.usage = usage


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self.format_usage())


@functools.cache
def build_parser() -> Parser:
    """Return the parser, which raises :class:`UsageError` for an invalid command line."""
    whole = Parser(
        prog="switchgear",
        description=ABOUT,
        epilog=f"{EXAMPLES}\n\nexit codes:\n{exits.format_exit_codes()}\n{PIPES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    whole.add_argument("--version", action="version", version=f"switchgear {__version__}")
    _add_common(whole)
    whole.set_defaults(url=None, token_file=None, json=False, no_color=False)
    commands = Commands(whole.add_subparsers(metavar="COMMAND", title="commands", required=True))
    for name in GROUPS:
        importlib.import_module(f"switchgear.cli.commands.{name}").register(commands)
    return whole


class Commands:
    """The commands of the program, or those of a group such as `ramp`."""

    def __init__(self, parsers: "argparse._SubParsersAction[Parser]") -> None:
        self._parsers = parsers

    def add(self, name: str, run: Run, summary: str, *options: Option, details: str = "") -> None:
        """Add a command; `details` follow the summary in the command's own help."""
        _set_command(self._add_parser(name, summary, details), run, options)

    def add_plain_group(self, name: str, summary: str) -> "Commands":
        """Add a group of commands without a default, such as `config`."""
        group = self._add_parser(name, summary)
        return Commands(group.add_subparsers(metavar="COMMAND", title="commands", required=True))

    def add_group(
        self, name: str, summary: str, run: Run, list_summary: str, *options: Option
    ) -> "Commands":
        """Add a group of commands, such as `ramp`, and its command `list`, which calls `run`.

        `list` also runs if the group is called without a command.
        """
        group = self._add_parser(name, summary)
        _set_command(group, run, options)
        commands = Commands(
            group.add_subparsers(metavar="COMMAND (list)", title="commands", required=False)
        )
        # Options given before `list` apply unless they are repeated after it.
        listing = commands._add_parser("list", list_summary, argument_default=argparse.SUPPRESS)
        _set_command(listing, run, options)
        return commands

    def _add_parser(self, name: str, summary: str, details: str = "", **settings: Any) -> Parser:
        parser = self._parsers.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.{f' {details}' if details else ''}",
            allow_abbrev=False,
            **settings,
        )
        _add_common(parser)
        return parser


def _set_command(parser: Parser, run: Run, options: Sequence[Option]) -> None:
    for add in options:
        add(parser)
    parser.set_defaults(run=run)


def option(*names: str, parse: Callable[[str], Any] | None = None, **settings: Any) -> Option:
    """Return an option whose value `parse` converts.

    The user sees the message of a :class:`ValueError` that `parse` raises.
    """

    def check(text: str) -> Any:
        assert parse is not None  # noqa: S101 - for the type checker
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None

    if parse is not None:
        settings["type"] = check
    return lambda parser: parser.add_argument(*names, **settings)


def one_of(*options: Option) -> Option:
    """Return an option that allows at most one of `options`."""

    def add(parser: argparse._ActionsContainer) -> None:
        group = parser.add_mutually_exclusive_group()
        for each in options:
            each(group)

    return add


def reason_option(text: str, *, required: bool = True) -> Option:
    return option("--reason", required=required, metavar="TEXT", help=text)


def duration_option(text: str, *, required: bool = False) -> Option:
    """Return the option `--for`, whose value is a duration such as `24h`, or `permanent`."""
    return option(
        "--for",
        dest="duration",
        metavar="DURATION",
        parse=parse_duration,
        required=required,
        help=text,
    )


def break_glass_options(text: str) -> Option:
    """Return the command-line options by which an operator overrides a safety rule."""

    def add(parser: argparse._ActionsContainer) -> None:
        parser.add_argument("--break-glass", action="append", metavar="RULE", help=text)
        parser.add_argument(
            "--break-glass-reason",
            metavar="TEXT",
            help="why the rule must be overridden (default: --reason)",
        )

    return add


def read_break_glass(args: argparse.Namespace) -> dict[str, Any] | None:
    """Return the overridden safety rule and the reason, as fields of the API; None without.

    Raise :class:`exits.CommandExit` for a reason without a rule.
    """
    if args.break_glass:
        return {"rule": args.break_glass, "reason": args.break_glass_reason or args.reason}
    if args.break_glass_reason is not None:
        detail = "--break-glass-reason needs --break-glass RULE, the rule to override."
        raise exits.make_usage_exit(detail)
    return None


def parse_switch(text: str) -> str:
    """Return the switch id for `text`; raise :class:`argparse.ArgumentTypeError` if invalid."""
    try:
        return resolve_switch_id(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a switch; use global, segment:finance, feature:chat or experiment:x"
        ) from None


def parse_duration(text: str) -> str:
    """Check a duration of the API, such as `30m`, or `permanent`, and return it."""
    if text != "permanent":
        duration_seconds(text)
    return text


def parse_count(text: str) -> int:
    """Parse a positive whole number. Raise :class:`ValueError` for any other text."""
    count = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not count:
        raise ValueError("use a whole number above 0")
    return count


def parse_rate(text: str) -> float:
    """Parse a positive number per second. Raise :class:`ValueError` for any other text."""
    rate = float(text)
    if not math.isfinite(rate) or rate <= 0:
        raise ValueError("use a number per second, such as 50 or 0.5")
    return rate


DRY_RUN = option("--dry-run", action="store_true", help="show the result without changing anything")
SWITCH = option("switch", type=parse_switch, metavar="SWITCH")


def _add_common(parser: argparse.ArgumentParser) -> None:
    shared = parser.add_argument_group("console and output")
    absent: dict[str, Any] = {"default": argparse.SUPPRESS}
    shared.add_argument(
        "--url", metavar="URL", help="address of the console (default: SWITCHGEAR_URL)", **absent
    )
    shared.add_argument(
        "--token-file",
        metavar="FILE",
        help="file with the API token (default: SWITCHGEAR_TOKEN)",
        **absent,
    )
    shared.add_argument(
        "--json",
        action="store_true",
        help="print JSON as in the API, also for errors",
        **absent,
    )
    shared.add_argument(
        "--no-color", action="store_true", help="no colors, as with NO_COLOR=1", **absent
    )
