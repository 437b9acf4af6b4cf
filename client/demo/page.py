"""Core's own page: how the services are, and buttons that break and mend them."""

import json
from collections.abc import Mapping
from html import escape

from demo.calling import Unreachable, call
from demo.serving import Answer, Body
from switchgear import Switchgear

ASK_SECONDS = 2.0
BUTTONS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "fail": ("half of the calls fail", {"errors": 0.5}),
    "slow": ("800 ms slower", {"delay_ms": 800}),
    "down": ("down", {"down": True}),
    "garble": ("write half of the events wrongly", {"garbled": 0.5}),
    "mend": ("well again", {}),
}
"""What a button asks of a service, by its value."""
ONLY = {"garble": "core"}
"""Buttons that one service alone has a use for."""

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="5">
<meta name="viewport" content="width=device-width">
<title>Switchgear demo</title>
<style>
  body {{ font: 16px/1.5 system-ui, sans-serif; color-scheme: light dark;
          max-width: 46rem; margin: 2rem auto; padding: 0 1rem }}
  td, th {{ text-align: left; padding: .3rem .8rem .3rem 0; vertical-align: top }}
  button {{ font: inherit; margin: 0 .2rem .2rem 0 }}
</style>
<h1>Three services, and faults for them</h1>
<p>What they do is to be seen in <a href="{console}">the console</a>. A fault is over after ten
minutes. Core applies version {version} of the console's switches ({stopped} not released).</p>
<table><tr><th>Service</th><th>Now</th><th>Make it</th></tr>{rows}</table>
</html>
"""
_ROW = (
    '<tr><th>{name}</th><td>{now}</td><td><form method="post" action="/">'
    '<input type="hidden" name="service" value="{name}">{buttons}</form></td></tr>'
)
_BUTTON = '<button name="make" value="{value}">{words}</button>'


class Pages:
    """`ports` are those of the services; `console` the address of the console."""

    def __init__(self, gear: Switchgear, ports: Mapping[str, int], console: str) -> None:
        self._gear = gear
        self._ports = ports
        self._console = console

    def show(self, _: Body) -> Answer:
        status = self._gear.status()
        version = "no" if status.version is None else f"{status.version}"
        rows = "".join(_row(name, _now(port)) for name, port in self._ports.items())
        content = _PAGE.format(
            console=escape(self._console), version=version, stopped=status.stopped, rows=rows
        )
        return Answer(200, content)

    def change(self, form: Body) -> Answer:
        """What a button asks for; then the page again."""
        port = self._ports.get(str(form.get("service")))
        wanted = BUTTONS.get(str(form.get("make")))
        if port is None or wanted is None:
            return Answer(400, {"error": "service and make must be those of a button"})
        try:
            call(port, "/faults", wanted[1], seconds=ASK_SECONDS)
        except Unreachable as error:
            return Answer(502, {"error": str(error)})
        return Answer(303, "", {"Location": "/"})


def _row(name: str, now: str) -> str:
    buttons = "".join(
        _BUTTON.format(value=value, words=escape(words))
        for value, (words, _) in BUTTONS.items()
        if ONLY.get(value, name) == name
    )
    return _ROW.format(name=name, now=escape(now), buttons=buttons)


def _now(port: int) -> str:
    try:
        _, fault = call(port, "/faults", {}, seconds=ASK_SECONDS, method="GET")
    except Unreachable:
        return "not running"
    ill = {name: value for name, value in fault.items() if value and name != "seconds"}
    return json.dumps(ill) if ill else "well"
