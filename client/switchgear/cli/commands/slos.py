"""Commands for SLOs and alerts: `slo list|show|alerts|ack`."""

from switchgear.cli import output
from switchgear.cli.api_client import url_path
from switchgear.cli.command_context import CommandContext
from switchgear.cli.formatters import StyledText
from switchgear.cli.parser import Commands, one_of, option
from switchgear.cli.views import slos as views

STATES = ("ok", "firing", "unknown")
ALERT_STATES = ("open", "acknowledged", "resolved")
MAX_ALERTS = 50


def register(commands: Commands) -> None:
    service = option("--service", metavar="SERVICE")
    slo = commands.add_group(
        "slo",
        "SLOs and alerts: list, show, alerts, ack",
        list_slos,
        "list SLOs, firing ones first",
        option("--state", choices=STATES),
        service,
    )
    slo.add(
        "show", show_slo, "show an SLO: burn rates, budget, rules", option("name", metavar="SLO")
    )
    slo.add(
        "alerts",
        list_alerts,
        "list unresolved alerts",
        one_of(
            option("--state", choices=ALERT_STATES),
            option("--all", action="store_true", help="include resolved alerts"),
        ),
        option("--slo", metavar="SLO"),
        service,
    )
    slo.add(
        "ack",
        acknowledge_alert,
        "acknowledge an alert: pauses its escalation for 24 h",
        option("alert", type=int, metavar="ALERT", help="alert number"),
        option("--comment", metavar="TEXT", help="who is working on it, and how"),
    )


def list_slos(call: CommandContext) -> None:
    query = {"state": call.args.state, "service": call.args.service}
    found = output.sort_by_state(output.get_items(call, "/slos/", query), views.ORDER)
    output.print_table(call, found, views.COLUMNS, views.slo_row, "No SLOs match.")


def show_slo(call: CommandContext) -> None:
    path = f"/slos{url_path(call.args.name)}"
    one, status = call.console.get(f"{path}/"), call.console.get(f"{path}/status")
    if call.print_json({"slo": one, "status": status}):
        return
    call.screen.line(StyledText(one["name"], "name"), "  ", views.format_state(status["state"]))
    call.screen.facts(views.slo_facts(one, status, call.clock))
    for columns, rows in (
        (views.WINDOW_COLUMNS, views.window_rows(status)),
        (views.RULE_COLUMNS, views.rule_rows(status)),
    ):
        if rows:
            call.screen.blank_line()
            call.screen.table(columns, rows)


def list_alerts(call: CommandContext) -> None:
    args = call.args
    states = [args.state] if args.state else [None] if args.all else ["open", "acknowledged"]
    beside = {"slo": args.slo, "service": args.service}
    pages = [
        call.console.get_pages("/alerts/", {"state": state, **beside}, MAX_ALERTS)
        for state in states
    ]
    if any(page["more"] for page in pages):
        what = "alerts in one state; use --slo or --service"
        output.note_truncated(call, MAX_ALERTS, what)
    found = [one for page in pages for one in page["results"]]
    empty = StyledText("✔ No open alerts." if not args.state else "None.", "good")
    output.print_table(call, found, views.ALERT_COLUMNS, views.alert_row, empty)


def acknowledge_alert(call: CommandContext) -> None:
    path = f"/alerts{url_path(call.args.alert)}/ack"
    one = call.send("POST", path, {"comment": call.args.comment})
    if not call.print_json(one):
        call.screen.table(views.ALERT_COLUMNS, [views.alert_row(one, call.clock)])
