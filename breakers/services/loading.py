"""Loading a configuration folder: all of it or nothing, and what that changes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import transaction

from breakers import names, publication
from breakers.models import Channel, Dependency, Registry, Service
from breakers.policies import configuration
from breakers.policies.configuration import FILES, Configuration, where
from breakers.policies.documents import Difference, differences
from breakers.services import catalogue, registry
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.errors import InvalidInput

REASON = "config load"
CONSOLE = ("user", "token", "slack")
"""Types of actors whose changes were made by hand rather than by loading files."""
NEW, CHANGED, SAME, KEPT = "new", "changed", "same", "kept"
LARGEST_FILE = 4 * 1024 * 1024


@dataclass(frozen=True)
class Change:
    """What loading did with one service, dependency or channel. `edited` says who had changed it
    by hand since, and when; empty if nobody had."""

    kind: str
    name: str
    outcome: str
    differences: tuple[Difference, ...] = ()
    edited: str = ""


@dataclass(frozen=True)
class Loaded:
    changes: tuple[Change, ...]
    remarks: tuple[str, ...]
    elsewhere: tuple[str, ...]
    """Dependencies that are registered and stand in no file; they are left alone."""

    def count(self, outcome: str) -> int:
        return sum(change.outcome == outcome for change in self.changes)


@dataclass
class _Load:
    """One run: who loads, what was edited by hand, what is wrong."""

    wanted: Configuration
    keep_edited: bool
    actor: Actor
    now: datetime
    edited: Mapping[str, str]
    errors: dict[str, list[str]] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def note(self, **row: Any) -> None:
        """Keep an audit row for the end: switches are engaged by whoever holds the trail's lock."""
        self.rows.append(row)

    def put(
        self,
        kind: str,
        name: str,
        before: dict[str, Any] | None,
        write: Callable[[], dict[str, Any]],
        place: Callable[[str], str],
    ) -> None:
        """Write one entry; what is wrong with it is noted under its file and key."""
        by_hand = self.edited.get(f"{kind}:{name}", "")
        if by_hand and self.keep_edited:
            self.changes.append(Change(kind, name, KEPT, edited=by_hand))
            return
        try:
            after = write()
        except InvalidInput as error:
            self.errors.update({place(path): said for path, said in error.errors.items()})
            return
        found = tuple(differences(before, after))
        outcome = NEW if before is None else CHANGED if found else SAME
        by_hand = by_hand if outcome != SAME else ""
        self.changes.append(Change(kind, name, outcome, found, by_hand))


def load(
    wanted: Configuration,
    *,
    keep_edited: bool = False,
    dry_run: bool = False,
    actor: Actor,
    now: datetime,
) -> Loaded:
    """Have everything the files name be as they say. What they don't name is left alone.

    With `keep_edited`, so is what somebody changed by hand after it was loaded. Raises
    :class:`InvalidInput`, which names file and key, and then changes nothing.
    """
    with transaction.atomic():
        publication.lock()
        run = _Load(wanted, keep_edited, actor, now, _edited_by_hand())
        _services(run)
        _channels(run)
        _dependencies(run)
        if run.errors:
            raise InvalidInput(run.errors)
        rows = Dependency.objects.registered().exclude(document={})
        elsewhere = sorted({row.name for row in rows} - wanted.dependencies.keys())
        if dry_run:
            transaction.set_rollback(True)
            run.rows.clear()
        for row in run.rows:
            audit.record(**row)
    return Loaded(tuple(run.changes), wanted.remarks, tuple(elsewhere))


def load_folder(folder: Path, **how: Any) -> Loaded:
    """The same from the files in a folder."""
    return load(configuration.read(read_files(folder)), **how)


def read_files(folder: Path) -> dict[str, str]:
    """The texts of the files that are there. Raises :class:`InvalidInput`."""
    if not folder.is_dir():
        raise InvalidInput({str(folder): ["There is no such folder."]})
    texts = {}
    for name in FILES:
        path = folder / name
        if not path.exists():
            continue
        try:
            if path.stat().st_size > LARGEST_FILE:
                raise InvalidInput({name: [f"Larger than {LARGEST_FILE // 1024} KiB."]})
            texts[name] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput({name: [f"Can't be read: {error}."]}) from error
    return texts


def nothing_yet() -> bool:
    """Whether nobody has ever registered anything here."""
    return not (Registry.objects.filter(version__gt=0).exists() or Service.objects.exists())


def _services(run: _Load) -> None:
    wanted = run.wanted
    known = {row.pk: catalogue.picture(row, catalogue.SERVICE_FIELDS) for row in _all(Service)}
    speaks_of_services = configuration.SERVICES in wanted.files
    for slug in {**wanted.services, **wanted.retries}:
        before = known.get(slug)
        if slug not in wanted.services and (speaks_of_services or before is None):
            run.errors[f"{configuration.RETRY}: workers: {slug}"] = ["There is no such service."]
            continue
        fields = {**wanted.services[slug]} if slug in wanted.services else {**(before or {})}
        if slug in wanted.retries:
            fields["retry"] = wanted.retries[slug]
        elif configuration.RETRY not in wanted.files and before:
            fields.setdefault("retry", before["retry"])
        run.put(
            "service", slug, before, _service_writer(run, slug, fields), _place("services", slug)
        )


def _service_writer(run: _Load, slug: str, fields: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    def write() -> dict[str, Any]:
        row = catalogue.put_service(
            slug=slug, fields=fields, actor=run.actor, now=run.now, record=run.note
        )
        return catalogue.picture(row, catalogue.SERVICE_FIELDS)

    return write


def _channels(run: _Load) -> None:
    known = {row.pk: catalogue.picture(row, catalogue.CHANNEL_FIELDS) for row in _all(Channel)}
    for name, fields in run.wanted.channels.items():

        def write(name: str = name, fields: dict[str, Any] = fields) -> dict[str, Any]:
            row = catalogue.put_channel(
                name=name, fields=fields, actor=run.actor, now=run.now, record=run.note
            )
            return catalogue.picture(row, catalogue.CHANNEL_FIELDS)

        run.put("channel", name, known.get(name), write, _place("channels", name))


def _dependencies(run: _Load) -> None:
    rows = {row.name: row for row in Dependency.objects.all()}
    for name, fields in run.wanted.dependencies.items():
        caller, callee = names.parts(name) or ("", "")
        row = rows.get(name)
        before = registry.picture(row) if row and registry.is_registered(row) else None
        if before is None and configuration.TIMEOUT not in run.wanted.files:
            said = f"It is not registered, and {configuration.TIMEOUT} is not there."
            run.errors[name] = [said]
            continue
        kept = {field: (before or {}).get(field) for field in run.wanted.silent_on}
        whole = {**kept, **fields}

        def write(
            caller: str = caller, callee: str = callee, whole: dict[str, Any] = whole
        ) -> dict[str, Any]:
            row = registry.put(
                caller=caller,
                callee=callee,
                fields=whole,
                reason=REASON,
                actor=run.actor,
                now=run.now,
                record=run.note,
            )
            return registry.picture(row)

        def place(path: str, name: str = name) -> str:
            return where(name, path)

        run.put("dependency", name, before, write, place)


def _place(part: str, name: str) -> Callable[[str], str]:
    return lambda path: f"{configuration.SERVICES}: {part}: {name}: {path}"


def _all(model: type[Service] | type[Channel]) -> Iterable[Any]:
    return model._default_manager.all()


def _edited_by_hand() -> dict[str, str]:
    """What people and programs changed last, by what it is, with who and when."""
    kinds = ("dependency", "service", "channel")
    actions = [f"{kind}.{did}" for kind in kinds for did in ("registered", "changed", "removed")]
    last = (
        AuditEntry.objects.filter(action__in=actions)
        .order_by("target", "-id")
        .distinct("target")
        .values_list("target", "actor_type", "actor_name", "action", "at")
    )
    return {
        target: f"{action.partition('.')[2]} by {kind}:{name} on {at:%Y-%m-%d %H:%M} UTC"
        for target, kind, name, action, at in last
        if kind in CONSOLE
    }
