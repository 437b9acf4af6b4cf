"""`run`: a whole installation, from its services to the sign-in message."""

import contextlib
import json
import os
from collections.abc import Callable, Mapping

from controlplane import environment
from controlplane.environment import Environment
from controlplane.supervisor import application, embedded, identity, layout, ports
from controlplane.supervisor.application import Application
from controlplane.supervisor.child import Child, ChildSpec
from controlplane.supervisor.embedded import Services
from controlplane.supervisor.failure import CannotRun, StopRequested
from controlplane.supervisor.layout import Layout
from controlplane.supervisor.output import Terminal
from controlplane.supervisor.tree import Tree

from .file_lock import Lock

Build = Callable[[Environment, Layout, Mapping[str, str]], Application]

APPLICATION_STOP_SECONDS = 5
_STAND_IN_STOP_SECONDS = 6
_STEP_AGAIN_SECONDS = 5
_WRONG_SETTING = 2  # Exit code of a process that names a wrong setting: retrying is no use.


def run(
    terminal: Terminal,
    build: Build = application.build,
    stop_seconds: float = APPLICATION_STOP_SECONDS,
) -> int:
    """Bring everything up and keep it up until a signal. Raises `CannotRun`, `WrongVariable`."""
    settings = environment.read()
    application.web_workers()
    port_keeper = ports.reserve(settings.port)
    place = layout.prepare(settings.data_dir)
    with contextlib.ExitStack() as kept:
        if port_keeper is not None:
            kept.enter_context(port_keeper)
        kept.callback(Lock(place.run / "lock").release)
        _forget_services(place)
        copy = place.data / "snapshot" / "current"
        # While there is a copy to serve, the data plane continues whatever else fails.
        tree = kept.enter_context(Tree(terminal, may_give_up=lambda: not copy.exists()))
        given = {name: os.environ.get(name, "") for name in embedded.VARIABLES}
        home = place.data
        if not given["DATABASE_URL"]:
            home = kept.enter_context(identity.cluster_home(place.data))
        services = Services()
        kept.callback(services.stop, tree)
        processes: list[Child] = []
        kept.callback(lambda: tree.stop(processes, stop_seconds))
        try:
            apps: list[Application] = []
            stand_ins: list[Child] = []

            def addressed() -> None:
                app = build(settings, place, services.addresses)
                apps.append(app)
                if app.stand_in is not None and copy.exists():
                    stand_ins.append(tree.supervise(app.stand_in))

            embedded.start(tree, services, place, home, given, durable=True, addressed=addressed)
            kept.callback(_forget_services, place)
            embedded.publish(tree, place, services)
            _serve(tree, settings, apps[0], processes, stand_ins)
        except StopRequested:
            terminal.say("stopping")
    return 0


def _forget_services(place: Layout) -> None:
    with contextlib.suppress(OSError):  # Its process id shows that it is out of date.
        (place.run / "services.json").unlink(missing_ok=True)


def _serve(
    tree: Tree,
    settings: Environment,
    app: Application,
    processes: list[Child],
    stand_ins: list[Child],
) -> None:
    account = {}
    beside = tree.launch(app.beside)
    for step in app.steps:
        done = _complete(tree, step)
        if step.keeps_stdout:
            account = _account(step.name, done.stdout)
    tree.wait_until(lambda: not beside.is_alive, None)
    _check(beside)
    processes.extend(tree.supervise(spec) for spec in app.processes)
    while (asked := tree.run_once(app.probe, application.READY_SECONDS + 10)).exit_code != 0:
        wrote = "".join(f"\n{c.spec.name}:{c.last_words()}" for c in processes if c.tail)
        late = (
            f"the web process did not get ready within {application.READY_SECONDS} s;"
            f" its last answer:{asked.last_words()}{wrote}"
        )
        if tree.may_give_up():
            raise CannotRun(late)
        tree.terminal.say(late)
    for stand_in in stand_ins:
        tree.retire(stand_in, _STAND_IN_STOP_SECONDS)
    tree.terminal.show(_welcome(settings, account) + app.says)
    processes.extend(tree.supervise(spec) for spec in app.later)
    tree.wait_until(lambda: False, None)


def _complete(tree: Tree, step: ChildSpec) -> Child:
    """Run a step until it succeeds; a failure ends the run if there is no copy to serve."""
    delay = _STEP_AGAIN_SECONDS
    while True:
        done = tree.run_once(step)
        if done.exit_code in {0, _WRONG_SETTING} or tree.may_give_up():
            _check(done)
            return done
        tree.terminal.say(
            f"{step.name} failed ({done.describe_end()}); trying again in {delay} s:"
            f"{done.last_words()}"
        )
        tree.wait_until(lambda: False, delay)


def _check(step: Child) -> None:
    if step.exit_code != 0:
        raise CannotRun(f"{step.spec.name} failed ({step.describe_end()}):{step.last_words()}")


def _account(step: str, said: bytes) -> dict[str, str | None]:
    lines = said.decode(errors="replace").strip().splitlines()
    try:
        account = json.loads(lines[-1])
        return {key: account.get(key) for key in ("user", "password", "note")}
    except (IndexError, ValueError, AttributeError) as error:
        raise CannotRun(f"{step} printed no JSON object: {lines[-1:]}") from error


def _welcome(settings: Environment, account: Mapping[str, str | None]) -> str:
    password = account.get("password") or account.get("note") or "(unchanged)"
    return (
        f"\nSwitchgear is ready. Environment: {settings.name}\n\n"
        f"  URL       http://{ports.HOST}:{settings.port}/\n"
        f"  User      {account.get('user') or '-'}\n"
        f"  Password  {password}\n\n"
        "Ctrl-C ends it.\n\n"
    )
