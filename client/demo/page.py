"""The demo's web page: the state of its services, and buttons that inject faults."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from demo.http_calls import Unreachable, call
from demo.http_service import Body, ServiceResponse
from switchgear import Policy, Switchgear

ASK_SECONDS = 2.0
BUTTONS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "fail": ("Fail half of the calls", {"errors": 0.5}),
    "slow": ("Slow it down by 800 ms", {"delay_ms": 800}),
    "down": ("Take it down", {"down": True}),
    "overload": ("Overload its model", {"overloaded": 1.0}),
    "garble": ("Garble half of the events", {"garbled": 0.5}),
    "mend": ("Remove the fault", {}),
}
"""Label and injected fault of each button, by the form value that it posts."""
ONLY = {"garble": "core", "overload": "oracle"}
"""The service of each button that is shown for one service only."""

_PAGE = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
_STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
_ROW = (
    '<section class="{state}"><h2>{name} <span>{now}</span></h2>'
    "<p>Inject faults: POST http://127.0.0.1:{port}/faults</p>"
    '<form method="post" action="/"><input type="hidden" name="service" value="{name}">{buttons}'
    "</form></section>"
)
_CALL = (
    '<li class="{state}">{name}: {mark}, {good:,} succeeded, {bad:,} failed, {rejected:,} rejected,'
    " {retries:,} retries, {fallbacks:,} fallbacks</li>"
)
_MARKS = {
    "closed": "\N{HEAVY CHECK MARK} closed",
    "half_open": "\N{WHITE RIGHT-POINTING TRIANGLE} half-open",
    "open": "\N{HEAVY MULTIPLICATION X} open",
}
_FAULTS: Mapping[str, Callable[[Any], str]] = {
    "down": lambda _: "down",
    "errors": lambda share: f"{share:.0%} of the calls fail",
    "delay_ms": lambda millis: f"{millis} ms slower",
    "overloaded": lambda share: f"{share:.0%} of the calls to its model are refused",
    "garbled": lambda share: f"{share:.0%} of the events are garbled",
    "only": lambda experiment: f"only in {experiment}",
}
_BUTTON = '<button name="make" value="{value}">{words}</button>'
_WELL = "\N{HEAVY CHECK MARK} healthy"


class Pages:
    """The request handlers of the demo's page.

    `ports` are the services' ports, `console` is the console's URL, and `policies` are the policies
    of core's calls.
    """

    def __init__(
        self, gear: Switchgear, ports: Mapping[str, int], console: str, policies: Sequence[Policy]
    ) -> None:
        self._gear = gear
        self._ports = ports
        self._console = console
        self._policies = policies

    def show(self, _: Body) -> ServiceResponse:
        status = self._gear.status()
        version = "no" if status.version is None else f"{status.version}"
        rows = "".join(
            _render_row(name, port, _describe_fault(port)) for name, port in self._ports.items()
        )
        all_closed = all(policy.breaker.state == "closed" for policy in self._policies)
        content = _PAGE.format(
            console=escape(self._console),
            version=version,
            stopped=status.stopped,
            rows=rows,
            state="well" if all_closed else "ill",
            calls="".join(map(_render_call, self._policies)),
        )
        return ServiceResponse(200, content)

    def show_style(self, _: Body) -> ServiceResponse:
        return ServiceResponse(200, _STYLE, text_type="text/css")

    def change(self, form: Body) -> ServiceResponse:
        """Inject the fault that the pressed button names, and redirect to the page."""
        port = self._ports.get(str(form.get("service")))
        button = BUTTONS.get(str(form.get("make")))
        if port is None or button is None:
            return ServiceResponse(400, {"error": "service and make must match a button"})
        try:
            call(port, "/faults", button[1], seconds=ASK_SECONDS)
        except Unreachable as error:
            return ServiceResponse(502, {"error": str(error)})
        return ServiceResponse(303, "", {"Location": "/"})


def _render_row(name: str, port: int, now: str) -> str:
    buttons = "".join(
        _BUTTON.format(value=value, words=escape(words))
        for value, (words, _) in BUTTONS.items()
        if ONLY.get(value, name) == name
    )
    state = "well" if now == _WELL else "ill"
    return _ROW.format(name=name, port=port, state=state, now=escape(now), buttons=buttons)


def _render_call(policy: Policy) -> str:
    counted, state = policy.counters.counted(), policy.breaker.state
    return _CALL.format(
        state="well" if state == "closed" else "ill",
        name=escape(policy.name),
        mark=_MARKS[state],
        good=counted["success"],
        bad=counted["failure"] + counted["timeout"],
        rejected=counted["rejected"],
        retries=counted["retry"],
        fallbacks=counted["fallback"],
    )


def _describe_fault(port: int) -> str:
    try:
        _, fault = call(port, "/faults", {}, seconds=ASK_SECONDS, method="GET")
    except Unreachable:
        return "\N{HEAVY MULTIPLICATION X} not running"
    faults = [words(fault[name]) for name, words in _FAULTS.items() if fault.get(name)]
    return f"\N{HEAVY MULTIPLICATION X} {', '.join(faults)}" if faults else _WELL
