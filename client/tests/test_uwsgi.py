"""Under uWSGI a client says what keeps its threads from running."""

import sys
from types import ModuleType

import pytest

from switchgear import Switchgear
from tests.fake_console import TOKEN


@pytest.fixture
def under_uwsgi(monkeypatch):
    """Puts uWSGI's own module there, with these options, as uWSGI does."""

    def put(version=b"2.0.20", **options):
        module = ModuleType("uwsgi")
        module.version = version
        module.opt = {name.replace("_", "-"): value for name, value in options.items()}
        monkeypatch.setitem(sys.modules, "uwsgi", module)

    return put


def warnings_of_a_client(caplog, url="http://127.0.0.1:9"):
    with Switchgear(url, TOKEN if url else "", state_dir=None):
        pass
    return [one.getMessage() for one in caplog.records if "uWSGI" in one.getMessage()]


@pytest.mark.parametrize(
    "options",
    [{}, {"enable_threads": b"false"}, {"threads": b"1"}, {"enable_threads": b"0"}],
)
def test_without_threads_one_warning_says_what_to_set(under_uwsgi, caplog, options):
    under_uwsgi(lazy_apps=True, **options)

    [warning] = warnings_of_a_client(caplog)

    assert "enable-threads" in warning
    assert "lazy-apps" not in warning


@pytest.mark.parametrize(
    "options",
    [{"enable_threads": True}, {"enable_threads": b"true"}, {"threads": b"2"}, {"threads": "4"}],
)
@pytest.mark.parametrize("forks", ["lazy_apps", "lazy", "py_call_osafterfork"])
def test_with_threads_that_outlive_the_fork_there_is_no_warning(
    under_uwsgi, caplog, options, forks
):
    under_uwsgi(master=True, **{forks: True}, **options)

    assert warnings_of_a_client(caplog) == []


def test_workers_that_are_forked_without_a_word_to_python_are_warned_of(under_uwsgi, caplog):
    under_uwsgi(enable_threads=True, master=True)

    [warning] = warnings_of_a_client(caplog)

    assert "lazy-apps" in warning
    assert "enable-threads" not in warning


def test_threads_that_run_by_default_need_no_option(under_uwsgi, caplog):
    under_uwsgi(version=b"2.0.31", lazy_apps=True)

    assert warnings_of_a_client(caplog) == []


def test_worker_that_is_not_forked_needs_no_option_for_forks(under_uwsgi, caplog):
    under_uwsgi(enable_threads=True, processes=b"1")

    assert warnings_of_a_client(caplog) == []


@pytest.mark.parametrize("opt", [None, 7, {b"odd": object()}])
def test_options_of_another_kind_raise_nothing(under_uwsgi, caplog, opt):
    under_uwsgi()
    sys.modules["uwsgi"].opt = opt

    assert len(warnings_of_a_client(caplog)) == 1


def test_without_a_console_there_is_no_warning(under_uwsgi, caplog):
    under_uwsgi()

    assert warnings_of_a_client(caplog, url=None) == []


def test_without_uwsgi_there_is_no_warning(caplog):
    assert "uwsgi" not in sys.modules
    assert warnings_of_a_client(caplog) == []
