"""SLOs and alerts: list, show, acknowledge."""

import argparse

from switchgear.cli import exits
from switchgear.cli.api_client import url_path
from switchgear.cli.command_context import CommandContext
from switchgear.cli.commands import output
from switchgear.cli.formatting import StyledText
from switchgear.cli.parser import Commands
from switchgear.cli.views import slos as views

STATES = ("ok", "firing", "unknown")
ALERT_STATES = ("open", "acknowledged", "resolved")
MAX_ALERTS = 50


def register(commands: Commands) -> None:
    slo = commands.group(
        "slo",
        "SLOs and alerts: list, show, alerts, ack",
        ("list", list_slos, "every SLO, those that fire first", _list_options),
    )
    slo.add("show", show, "one SLO: burn rates, budget, rules", _name_options)
    slo.add("alerts", alerts, "alerts that are not resolved, or others", _alert_options)
    slo.add(
        "ack", acknowledge, "say that you know of an alert: no calls for 24 h", _acknowledge_options
    )


def list_slos(call: CommandContext) -> int:
    query = {"state": call.args.state, "service": call.args.service}
    found = views.ordered(output.get_all(call, "/slos/", query))
    return output.print_table(call, found, views.COLUMNS, views.row, "There is no such SLO.")


def show(call: CommandContext) -> int:
    path = f"/slos{url_path(call.args.name)}"
    one, status = call.console.get(f"{path}/"), call.console.get(f"{path}/status")
    if call.print_json({"slo": one, "status": status}):
        return exits.DONE
    call.screen.line(StyledText(one["name"], "name"), "  ", views.state(status["state"]))
    call.screen.facts(views.facts(one, status, call.clock))
    for columns, rows in (
        (views.WINDOW_COLUMNS, views.windows(status)),
        (views.RULE_COLUMNS, views.rules(status)),
    ):
        if rows:
            call.screen.blank_line()
            call.screen.table(columns, rows)
    return exits.DONE


def alerts(call: CommandContext) -> int:
    args = call.args
    states = [args.state] if args.state else [None] if args.all else ["open", "acknowledged"]
    beside = {"slo": args.slo, "service": args.service}
    pages = [
        call.console.get_pages("/alerts/", {"state": state, **beside}, MAX_ALERTS)
        for state in states
    ]
    if any(page["more"] for page in pages):
        output.note_truncated(
            call, MAX_ALERTS, "alerts of one state: choose, by --slo or --service"
        )
    found = [one for page in pages for one in page["results"]]
    empty = StyledText("✔ No alert is open." if not args.state else "None.", "good")
    return output.print_table(call, found, views.ALERT_COLUMNS, views.alert_row, empty)


def acknowledge(call: CommandContext) -> int:
    path = f"/alerts{url_path(call.args.alert)}/ack"
    one = call.console.send("POST", path, {"comment": call.args.comment}).document
    if not call.print_json(one):
        call.screen.table(views.ALERT_COLUMNS, [views.alert_row(one, call.clock)])
    return exits.DONE


def _list_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--state", choices=STATES)
    parser.add_argument("--service", metavar="SERVICE")


def _name_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="SLO")


def _alert_options(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--state", choices=ALERT_STATES)
    which.add_argument("--all", action="store_true", help="also those that are resolved")
    parser.add_argument("--slo", metavar="SLO")
    parser.add_argument("--service", metavar="SERVICE")


def _acknowledge_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("alert", type=int, metavar="ALERT", help="its number")
    parser.add_argument("--comment", metavar="TEXT", help="who is at it, and how")
