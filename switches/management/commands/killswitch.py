"""`manage.py killswitch`: break-glass on the server, when browser and API are out of reach."""

import json
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import CommandError
from django.db import transaction

from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.errors import InvalidInput
from controlplane.core.shell import ShellCommand, shell_actor
from switches import services
from switches.effect import Effect, effect_of, effects
from switches.models import Episode, Scope, State, Switch
from switches.resources import switch_resource
from switches.rules.errors import SafetyRefused
from switches.services.register import find, identify
from switches.services.release import MODES

STRAGGLERS_NAMED = 5


class Command(ShellCommand):
    help = "Engage, release, extend and show kill switches from the server's shell."

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        for name, needs_switch in (
            ("engage", True),
            ("release", True),
            ("extend", True),
            ("status", True),
            ("list", False),
        ):
            command = commands.add_parser(name)
            command.add_argument("--json", action="store_true", help="print the API's resource")
            which = command.add_mutually_exclusive_group(required=needs_switch)
            for scope in ("segment", "feature", "experiment"):
                which.add_argument(f"--{scope}", metavar="KEY")
            which.add_argument("--global", action="store_true", dest="global_", help="global:all")
            if name in {"engage", "release", "extend"}:
                command.add_argument("--reason", required=True)
            if name in {"engage", "extend"}:
                command.add_argument("--for", dest="duration", default="24h", help="24h, 7d, …")
            if name == "engage":
                command.add_argument("--on-expiry", choices=["hold", "ramp", "release"])
            if name == "release":
                command.add_argument("--mode", choices=MODES, default="ramp")
            if name in {"engage", "release"}:
                command.add_argument(
                    "--break-glass",
                    action="append",
                    metavar="RULE",
                    help="override this safety rule; again for another. Somebody has to review it.",
                )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["command"] == "list":
            self.list(options)
            return
        scope, key = _which(options)
        getattr(self, options["command"])(scope, key, options)

    def engage(self, scope: str, key: str, options: dict[str, Any]) -> None:
        with transaction.atomic(), _naming_the_option():
            done = services.engage(
                scope=scope,
                key=key,
                reason=options["reason"],
                expires_in=options["duration"],
                on_expiry=options["on_expiry"],
                break_glass=_break_glass(options),
                actor=shell_actor(),
                now=db_now(),
            )
        self.status(scope, key, options)
        self.tell_of(done.review, options)
        self.tell_of_the_rest(done, options)

    def release(self, scope: str, key: str, options: dict[str, Any]) -> None:
        """Nobody else has to approve it here, but where somebody should have, a review is left."""
        with transaction.atomic(), _naming_the_option():
            done = services.release(
                scope=scope,
                key=key,
                justification=options["reason"],
                mode=options["mode"],
                break_glass=_break_glass(options),
                actor=shell_actor(),
                now=db_now(),
            )
        self.status(scope, key, options)
        self.tell_of(done.review, options)

    def tell_of(self, review: Approval | None, options: dict[str, Any]) -> None:
        if review is not None and not options["json"]:
            against = review.diff["rule"]
            self.line(f"  against the rule {against}: review {review.pk} waits for a signature")

    def extend(self, scope: str, key: str, options: dict[str, Any]) -> None:
        with transaction.atomic():
            done = services.extend(
                scope=scope,
                key=key,
                expires_in=options["duration"],
                reason=options["reason"],
                actor=shell_actor(),
                now=db_now(),
            )
        self.status(scope, key, options)
        self.tell_of_the_rest(done, options)

    def tell_of_the_rest(self, done: services.Engagement, options: dict[str, Any]) -> None:
        """What was asked for and is not so, or not yet."""
        if options["json"]:
            return
        if done.notice:
            self.line(f"  {done.notice}")
        if done.approval is not None:
            self.line(f"  permanent waits for somebody to approve it: request {done.approval.pk}")

    def status(self, scope: str, key: str, options: dict[str, Any]) -> None:
        switch = find(scope, key) or Switch(id=identify(scope, key), scope=scope, key=key)
        effect = effect_of(switch, db_now())
        if options["json"]:
            self.line(json.dumps(switch_resource(switch, effect)))
            return
        self.line(_sentence(switch))
        if effect:
            for told in _progress(effect):
                self.line(f"  {told}")

    def list(self, options: dict[str, Any]) -> None:
        scope, key = _which(options, required=False)
        stopped = Switch.objects.stopped().with_open_episode().order_by("id")
        if scope:
            stopped = stopped.filter(scope=scope, key=key)
        switches = list(stopped[:1000])
        if options["json"]:
            measured = effects(switches, db_now())
            found = [switch_resource(switch, measured.get(switch.pk)) for switch in switches]
            self.line(json.dumps(found))
            return
        for switch in switches:
            self.line(_sentence(switch))
        if not switches:
            self.line("Nothing is engaged.")


def _break_glass(options: dict[str, Any]) -> dict[str, Any] | None:
    named = options["break_glass"]
    return {"rule": named, "reason": options["reason"]} if named else None


@contextmanager
def _naming_the_option() -> Iterator[None]:
    """Where a rule is in the way, say how to go on from here."""
    try:
        yield
    except SafetyRefused as refused:
        options = " ".join(f"--break-glass {shlex.quote(one.rule)}" for one in refused.refusals)
        said = " ".join(
            f"“{one.rule}” refuses: {one.detail} {one.would_pass}" for one in refused.refusals
        )
        raise CommandError(f"{said} To go on all the same, add {options}") from refused


def _which(options: dict[str, Any], *, required: bool = True) -> tuple[str, str]:
    if options["global_"]:
        return Scope.GLOBAL.value, "all"
    for scope in ("segment", "feature", "experiment"):
        if options[scope] is not None:
            return scope, options[scope]
    if required:
        raise InvalidInput({"switch": ["Name one: --segment K, --feature K, --experiment K."]})
    return "", ""


def _progress(effect: Effect) -> Iterator[str]:
    """How far the last change has got, by what instances say."""
    yield f"version {effect.version} is committed{_applied(effect)}"
    if effect.silent_total:
        yield f"{effect.silent_total} fell silent within the last 5 minutes before saying so"
    if effect.past_expiry:
        yield "past its expiry: instances may let traffic flow by themselves"
    if effect.measured:
        were, have = ("was", "has") if effect.measured == 1 else ("were", "have")
        yield (
            f"of the {effect.measured} that {were} there before the commit and {have} said so: "
            f"half within {effect.p50_ms} ms, 99 % within {effect.p99_ms} ms"
        )


def _applied(effect: Effect) -> str:
    if not effect.instances:
        return (
            "; no instance was heard from within 30 seconds, "
            "so nothing is known about the effect now"
        )
    if effect.by_everybody:
        them = "the 1 instance" if effect.instances == 1 else f"all {effect.instances} instances"
        return f", applied by {them} heard from"
    named = ", ".join(straggler.id for straggler in effect.stragglers[:STRAGGLERS_NAMED])
    more = effect.stragglers_total - len(effect.stragglers[:STRAGGLERS_NAMED])
    plural = "" if effect.instances == 1 else "s"
    return (
        f", applied by {effect.applied} of {effect.instances} instance{plural}; not by {named}"
        + (f" and {more} more" if more else "")
    )


def _sentence(switch: Switch) -> str:
    episode = switch.episode
    if episode is None:
        return f"{switch.pk}  {State.RELEASED.value}"
    ends = (
        f"until {episode.expires_at:%Y-%m-%d %H:%M} UTC, then {episode.on_expiry}"
        if episode.expires_at
        else f"permanent{_reconfirm_by(episode)}"
    )
    late = "  OVERDUE" if episode.overdue else ""
    who = f"{episode.engaged_by_type}:{episode.engaged_by_name}"
    return f"{switch.pk}  {episode.state.value}{late}  {ends}  by {who}: {episode.reason}"


def _reconfirm_by(episode: Episode) -> str:
    due_at = episode.reconfirm_due_at
    return f", to be re-confirmed by {due_at:%Y-%m-%d %H:%M} UTC" if due_at else ""
