"""`manage.py serve …`: run one process of the installation, as in a container."""

import os
from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from controlplane import environment
from controlplane.core.shell import ShellCommand
from controlplane.processes import command_lines, exec_command

SERVERS = {"web": command_lines.web, "dataplane": command_lines.dataplane}
PORT = 8000


class Command(ShellCommand):
    help = (
        "Run one process of the installation. Each process serves /health/startup, /health/live and"
        " /health/ready (a data plane: /health/ready/data) on its port."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        roles = parser.add_subparsers(dest="role", required=True)
        for role in SERVERS:
            server = roles.add_parser(role)
            server.add_argument("--host", default="0.0.0.0")  # noqa: S104 - a container's own
            server.add_argument("--port", type=exec_command.whole_number(1, 65535), default=PORT)
            server.add_argument(
                "--workers", type=exec_command.whole_number(1, 64), default=1, help="processes"
            )
        for role in ("worker", "beat", "watchdog"):
            other = roles.add_parser(role)
            other.add_argument(
                "--health-port",
                type=exec_command.whole_number(0, 65535),
                default=PORT,
                help="port of the health probes; 0 for none",
            )
            if role == "worker":
                other.add_argument(
                    "--queues", default="", help="only these queues, separated by commas"
                )

    def handle(self, *args: Any, **options: Any) -> None:
        role, port = options["role"], options.get("port", PORT)
        exec_command.check_login(settings.ENV)
        if role in SERVERS:
            host = exec_command.free_address(options["host"], port)
            exec_command.replace_process(
                SERVERS[role](host=host, port=port, workers=options["workers"])
            )
        os.environ["HEALTH_PORT"] = str(options["health_port"])
        if role == "worker":
            exec_command.replace_process(command_lines.worker(options["queues"]))
        if role == "beat":
            exec_command.replace_process(command_lines.beat())
        os.chdir(environment.ROOT)
        exec_command.replace_process(command_lines.watchdog())
