"""The static files served: ours, and only the library files that pages load."""

from pathlib import Path

from django.core.management import call_command
from django.test import override_settings

from controlplane import assets


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")


def served(static: Path) -> set[str]:
    """Return the files that `collectstatic` finds."""
    with override_settings(STATICFILES_DIRS=assets.list_folders(static)):
        found = assets.Finder().list(["CVS", ".*", "*~"])
        return {f"{getattr(at, 'prefix', None) or ''}/{name}".lstrip("/") for name, at in found}


def test_library_that_is_not_installed_is_left_out(tmp_path):
    put(tmp_path, "css/tokens.css", "package.json", "package-lock.json", "tsconfig.json")

    assert served(tmp_path) == {"css/tokens.css"}


def test_of_a_library_only_what_pages_load_is_served(tmp_path):
    put(tmp_path, "js/plots.js", "package.json", "node_modules/.package-lock.json")
    library = "node_modules/uplot"
    put(tmp_path, f"{library}/LICENSE", f"{library}/dist/uPlot.d.ts", f"{library}/package.json")
    put(tmp_path, f"{library}/dist/uPlot.iife.min.js", f"{library}/dist/uPlot.min.css")
    put(tmp_path, f"{library}/dist/uPlot.esm.js", f"{library}/dist/uPlot.iife.js")

    assert served(tmp_path) == {
        "js/plots.js",
        "vendor/uplot/uPlot.iife.min.js",
        "vendor/uplot/uPlot.min.css",
    }


def test_module_that_another_imports_has_the_name_of_what_is_in_it(tmp_path, settings):
    put(tmp_path, "from/js/page.js", "from/js/page/words.js")
    (tmp_path / "from/js/page.js").write_text('import { rate } from "./page/words.js";\nrate();\n')
    settings.STATICFILES_DIRS = [tmp_path / "from"]
    settings.STATICFILES_FINDERS = ["controlplane.assets.Finder"]
    settings.STATIC_ROOT = tmp_path / "to"
    settings.STORAGES = {"staticfiles": {"BACKEND": "controlplane.assets.Storage"}}

    call_command("collectstatic", interactive=False, verbosity=0)

    (words,) = (tmp_path / "to/js/page").glob("words.*.js")
    (page,) = (tmp_path / "to/js").glob("page.*.js")
    assert f'"./page/{words.name}"' in page.read_text()
