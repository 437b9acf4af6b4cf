"""`run` with stand-ins for the Django processes: `python -m … stand_in`.

STAND_INS is a JSON object of child name → Python source; its `web` is one that says it is ready
unless another is given. `migrate` and `static` are steps, `later-…` is started once all is ready,
`logged-…` writes to the log file.
READY_SECONDS bounds the wait for `web`, STOP_SECONDS that for the end of the children.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from controlplane.environment import Environment
from controlplane.processes import command_lines
from controlplane.supervisor.__main__ import run_reporting_errors
from controlplane.supervisor.application import LOG_NAME, RunPlan, child_environment
from controlplane.supervisor.child import ChildSpec
from controlplane.supervisor.layout import Layout
from controlplane.supervisor.output import Terminal
from controlplane.supervisor.run import APPLICATION_STOP_SECONDS, run

READY_WEB = """
import http.server, os

class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(os.getpid()).encode())

    def log_message(self, *_):
        pass

class Server(http.server.ThreadingHTTPServer):
    def server_bind(self):
        import socket
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()

Server(("127.0.0.1", int(os.environ["PORT"])), Ready).serve_forever()
"""
LATER, LOGGED = "later-", "logged-"
ACCOUNT = '{"user": "admin", "password": "first-password", "note": null}'


def build(settings: Environment, place: Layout, addresses: Mapping[str, str]) -> RunPlan:
    environment = child_environment(place, addresses)
    sources = {"web": READY_WEB, **json.loads(os.environ.get("STAND_INS", "{}"))}

    def python(name: str, *arguments: str, keeps_stdout: bool = False) -> ChildSpec:
        command = (sys.executable, *arguments)
        log = place.log / LOG_NAME if name.startswith(LOGGED) else None
        return ChildSpec(name, command, environment, Path.cwd(), log=log, keeps_stdout=keeps_stdout)

    steps = [python("provision", "-c", f"print('{ACCOUNT}')", keeps_stdout=True)]
    if "migrate" in sources:
        steps.insert(0, python("migrate", "-c", sources.pop("migrate")))
    patience = os.environ.get("READY_SECONDS", "10")
    url = f"http://127.0.0.1:{settings.port}/health/ready"
    static = python("static", "-c", sources.pop("static", ""))
    lasting = [python(name, "-c", source) for name, source in sources.items()]
    return RunPlan(
        parallel_step=static,
        steps=tuple(steps),
        processes=tuple(one for one in lasting if not one.name.startswith(LATER)),
        probe=python("ready", "-m", "controlplane.supervisor.probe", url, "localhost", patience),
        stand_in=ChildSpec(
            "data plane",
            (sys.executable, *command_lines.stand_in(host="127.0.0.1", port=settings.port)),
            environment,
            Path.cwd(),
            optional=True,
        )
        if "SECRET_KEY" in os.environ
        else None,
        later=tuple(one for one in lasting if one.name.startswith(LATER)),
    )


if __name__ == "__main__":
    stop_seconds = float(os.environ.get("STOP_SECONDS", APPLICATION_STOP_SECONDS))
    sys.exit(run_reporting_errors(lambda: run(Terminal(1), build, stop_seconds)))
