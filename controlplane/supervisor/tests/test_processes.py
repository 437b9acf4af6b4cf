"""Children that die, hang, flood and leave things behind. No embedded services: see the faults."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from controlplane.supervisor.run import APPLICATION_STOP_SECONDS
from controlplane.supervisor.tests import harness, stand_in
from controlplane.supervisor.tests.harness import OUTSIDE_SERVICES, assert_nothing_left, start

pytestmark = [pytest.mark.faults, pytest.mark.smoke]
SLEEP = "import time; time.sleep(600)"
STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True);" + (
    "time.sleep(600)"
)


def web_pid(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    connection.request("GET", "/")
    return int(connection.getresponse().read())


def test_ready_names_the_url_the_user_the_password_and_the_environment(tmp_path: Path) -> None:
    environment = {**OUTSIDE_SERVICES, "ENVIRONMENT_NAME": "staging"}

    with start(tmp_path / "data", environment=environment) as run:
        run.wait_for("Press Ctrl-C to stop.")

    for text in (
        "Environment: staging",
        f"URL       http://127.0.0.1:{run.port}/",
        "User      admin",
        "Password  first-password",
    ):
        assert text in run.output


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_everything(tmp_path: Path, signum: int) -> None:
    with start(tmp_path / "data", stand_ins={"worker": SLEEP}, environment=OUTSIDE_SERVICES) as run:
        run.wait_until_ready()

        code, seconds = run.end(signum)

        assert code == 0
        assert seconds < 9
        assert_nothing_left(run)


def test_under_nohup_a_terminal_that_is_closed_ends_nothing(tmp_path: Path) -> None:
    ignoring = {"environment": OUTSIDE_SERVICES, "on_hangup": signal.SIG_IGN}
    with start(tmp_path / "data", **ignoring) as run:
        run.wait_until_ready()

        run.process.send_signal(signal.SIGHUP)
        time.sleep(0.5)

        assert _answers(run.port)
        assert run.end()[0] == 0


def test_a_child_that_ignores_sigterm_and_a_second_ctrl_c_stay_under_ten_seconds(
    tmp_path: Path,
) -> None:
    given = 0.6
    environment = {**OUTSIDE_SERVICES, "STOP_SECONDS": str(given)}
    with start(tmp_path / "data", stand_ins={"worker": STUBBORN}, environment=environment) as run:
        run.wait_until_ready()
        run.wait_for("deaf")

        run.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        code, seconds = run.end(signal.SIGINT)

        assert code == 0
        assert seconds < 9 - (APPLICATION_STOP_SECONDS - given)
        assert "worker did not stop in time and was killed" in run.output
        assert_nothing_left(run)


def test_later_children_reach_the_web_process_while_they_stop(tmp_path: Path) -> None:
    reporting = (
        "import os, signal, sys, time, urllib.request\n"
        "def report(*_):\n"
        "    time.sleep(0.5)\n"
        "    urllib.request.urlopen('http://127.0.0.1:' + os.environ['PORT'], timeout=2).read()\n"
        "    sys.exit(print('delivered', flush=True))\n"
        "signal.signal(signal.SIGTERM, report)\n"
        "print('listening', flush=True)\n"
        "time.sleep(600)"
    )
    with start(
        tmp_path / "data", stand_ins={"later-core": reporting}, environment=OUTSIDE_SERVICES
    ) as run:
        run.wait_for("listening")

        code, _ = run.end(signal.SIGINT)

        assert code == 0
        assert "delivered" in run.output


def test_the_terminal_tells_what_starts_and_when_all_has_stopped(tmp_path: Path) -> None:
    with start(tmp_path / "data", environment=OUTSIDE_SERVICES) as run:
        run.wait_until_ready()
        run.end(signal.SIGINT)

    said = [line for line in run.lines if line.startswith("switchgear | ")]
    assert said == [
        f"switchgear | {text}" for text in ("starting the console", "stopping", "stopped")
    ]


def test_errors_and_deaths_of_a_logged_child_reach_the_terminal(tmp_path: Path) -> None:
    logging = (
        """print('{"event": "worker.ready", "level": "info"}'); print('plain');"""
        """print('{"event": "outbox.stuck", "level": "error"}', flush=True);"""
        "import sys, time; time.sleep(2); sys.exit(3)"
    )
    log = tmp_path / "data" / "log" / "console.log"

    with start(
        tmp_path / "data", stand_ins={"logged-worker": logging}, environment=OUTSIDE_SERVICES
    ) as run:
        run.wait_for(f"restarting it in 0.1 s; its output is in {log}")
        run.end()

    assert "logged-worker | error: outbox.stuck" in run.lines
    assert "worker.ready" not in run.output
    assert log.read_text().splitlines()[:2] == [
        '{"event": "worker.ready", "level": "info"}',
        "logged-worker | plain",
    ]


def test_lines_that_a_log_file_cannot_take_appear_in_the_terminal(tmp_path: Path) -> None:
    logging = (
        "import time; print('last words', flush=True); time.sleep(2); raise SystemExit('gone')"
    )
    log = tmp_path / "data" / "log" / "console.log"
    log.parent.mkdir(parents=True)
    log.symlink_to("/dev/full")

    with start(
        tmp_path / "data", stand_ins={"logged-worker": logging}, environment=OUTSIDE_SERVICES
    ) as run:
        run.wait_for("logged-worker stopped (exit code 1); restarting it in 0.1 s")
        run.end()

    assert "logged-worker | last words" in run.lines
    assert "logged-worker | gone" in run.lines
    assert "its output is in" not in run.output


def test_what_a_child_started_ends_with_it_even_in_a_session_of_its_own(tmp_path: Path) -> None:
    parent = (
        "import subprocess, sys, time;"
        "same = subprocess.Popen(['sleep', '600']);"
        "away = subprocess.Popen(['sleep', '601'], start_new_session=True);"
        "print('started', same.pid, away.pid, flush=True); time.sleep(600)"
    )
    with start(
        tmp_path / "data", stand_ins={"worker": parent}, environment=OUTSIDE_SERVICES
    ) as run:
        run.wait_for("started")
        run.wait_until_ready()

        code, _ = run.end()

        assert code == 0
        assert_nothing_left(run)


def test_a_killed_web_process_starts_again_on_its_port(tmp_path: Path) -> None:
    with start(tmp_path / "data", environment=OUTSIDE_SERVICES) as run:
        run.wait_until_ready()
        first = web_pid(run.port)

        os.kill(first, signal.SIGKILL)

        run.wait_for("web stopped (killed by signal 9); restarting it in 0.1 s")
        harness.wait_until(lambda: not harness.is_free(run.port), 5)
        harness.wait_until(lambda: _answers(run.port), 5, run)
        assert web_pid(run.port) != first


def _answers(port: int) -> bool:
    try:
        return web_pid(port) > 0
    except OSError:
        return False


def test_five_quick_deaths_end_the_run_with_the_last_words(tmp_path: Path) -> None:
    dying = "import sys; sys.exit('no disk left in the drawer')"

    with start(tmp_path / "data", stand_ins={"beat": dying}, environment=OUTSIDE_SERVICES) as run:
        code = run.wait(60)

        assert code == 1
        assert run.output.count("beat stopped (exit code 1); restarting it in") == 4
        reason = run.output.split("switchgear: ")[-1]
        assert reason.startswith(
            "beat stopped 5 times in a row within 2 s of its start (exit code 1)"
        )
        assert "no disk left in the drawer" in reason
        assert_nothing_left(run)


def test_five_quick_deaths_end_nothing_once_there_is_something_to_serve(tmp_path: Path) -> None:
    dying = "import sys; sys.exit('no disk left in the drawer')"
    copy = tmp_path / "data" / "snapshot" / "current"
    copy.parent.mkdir(parents=True)
    copy.touch()

    with start(tmp_path / "data", stand_ins={"beat": dying}, environment=OUTSIDE_SERVICES) as run:
        run.wait_for("beat stopped 5 times in a row within 2 s of its start (exit code 1)")
        run.wait_for("Continuing, and retrying beat.")

        assert "no disk left in the drawer" in run.output
        assert _answers(run.port)
        assert run.end()[0] == 0
        assert_nothing_left(run)


@pytest.mark.parametrize("step", ["migrate", "static"])
def test_a_failed_step_ends_the_run_with_its_reason(tmp_path: Path, step: str) -> None:
    failing = "import sys; sys.exit('ALLOWED_HOSTS: must be host names')"

    with start(tmp_path / "data", stand_ins={step: failing}, environment=OUTSIDE_SERVICES) as run:
        assert run.wait() == 1

    assert f"switchgear: {step} failed (exit code 1):\n    ALLOWED_HOSTS: must be" in run.output


def test_a_signal_during_a_step_ends_the_run(tmp_path: Path) -> None:
    slow = "print('migrating', flush=True); import time; time.sleep(600)"

    with start(tmp_path / "data", stand_ins={"migrate": slow}, environment=OUTSIDE_SERVICES) as run:
        run.wait_for("migrating")

        code, seconds = run.end()

        assert code == 0
        assert seconds < 9
        assert_nothing_left(run)


def test_a_web_process_that_never_gets_ready_ends_the_run(tmp_path: Path) -> None:
    unready = "print('thinking', flush=True); import time; time.sleep(600)"

    environment = {**OUTSIDE_SERVICES, "READY_SECONDS": "1"}

    with start(tmp_path / "data", stand_ins={"web": unready}, environment=environment) as run:
        assert run.wait(60) == 1

    assert "the web process was not ready" in run.output
    assert "Connection refused" in run.output
    assert "web:\n    thinking" in run.output


def test_a_flood_of_output_blocks_no_child(tmp_path: Path) -> None:
    mark = tmp_path / "written"
    flood = (
        "import pathlib, sys, time\n"
        "for number in range(100_000): print('line', number, 'x' * 60)\n"
        f"pathlib.Path({str(mark)!r}).touch(); time.sleep(600)"
    )
    data = tmp_path / "data"

    with start(data, stand_ins={"worker": flood}, environment=OUTSIDE_SERVICES) as run:
        harness.wait_until(mark.exists, 30, run)


def test_nobody_reading_the_terminal_blocks_no_child(tmp_path: Path) -> None:
    mark = tmp_path / "written"
    flood = (
        "import pathlib, time\n"
        "for number in range(50_000): print('line', number, 'x' * 60)\n"
        f"pathlib.Path({str(mark)!r}).touch(); time.sleep(600)"
    )
    read_end, write_end = os.pipe()
    port = harness.free_port()
    process = subprocess.Popen(
        harness.STAND_IN,
        cwd=harness.ROOT,
        env={
            **os.environ,
            **OUTSIDE_SERVICES,
            "PORT": str(port),
            "SWITCHGEAR_DATA_DIR": str(tmp_path / "data"),
            "STAND_INS": json.dumps({"worker": flood}),
        },
        stdout=write_end,
        stderr=subprocess.DEVNULL,
    )
    try:
        harness.wait_until(mark.exists, 30)
        process.terminate()
        assert process.wait(10) == 0
    finally:
        process.kill()
        os.close(read_end)
        os.close(write_end)


def test_a_killed_supervisor_leaves_nobody(tmp_path: Path) -> None:
    forking_web = (
        "import multiprocessing\n"
        "from controlplane.supervisor.lifeline import die_with_parent\n"
        "def serve():\n"
        "    die_with_parent()\n"
        f"    exec({stand_in.READY_WEB!r})\n"
        "workers = [multiprocessing.get_context('fork').Process(target=serve) for _ in range(2)]\n"
        "[worker.start() for worker in workers]\n"
        "[worker.join() for worker in workers]\n"
    )
    with start(
        tmp_path / "data",
        stand_ins={"web": forking_web, "worker": STUBBORN},
        environment=OUTSIDE_SERVICES,
    ) as run:
        run.wait_until_ready()
        assert len(harness.processes_of(run.data)) >= 5

        run.process.kill()

        run.process.wait(5)
        harness.wait_until(lambda: not harness.processes_of(run.data), 2, run)
        harness.wait_until(lambda: harness.is_free(run.port), 2, run)


def test_a_busy_port_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        with start(tmp_path / "data", environment=OUTSIDE_SERVICES, port=port) as run:
            assert run.wait() == 2

    assert run.lines == [f"switchgear: PORT: 127.0.0.1:{port} is in use; set PORT to a free one"]
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("port", ["0", "65536", "eighty", "-1", "8000.5"])
def test_a_wrong_port_is_one_line(tmp_path: Path, port: str) -> None:
    environment = {**OUTSIDE_SERVICES, "PORT": port}

    with start(tmp_path / "data", environment=environment) as run:
        assert run.wait() == 2

    assert len(run.lines) == 1
    assert run.lines[0].startswith("PORT: ")


def test_two_runs_on_one_data_directory_collide_with_one_line(tmp_path: Path) -> None:
    with start(tmp_path / "data", environment=OUTSIDE_SERVICES) as run:
        run.wait_until_ready()

        with start(tmp_path / "data", environment=OUTSIDE_SERVICES) as second:
            assert second.wait() == 2
            assert len(second.lines) == 1
            assert f"already running here: process {run.process.pid} holds" in second.output

            assert run.process.poll() is None


def test_two_runs_on_one_port_collide_before_the_first_serves(tmp_path: Path) -> None:
    slow = "print('migrating', flush=True); import time; time.sleep(600)"

    with start(tmp_path / "one", stand_ins={"migrate": slow}, environment=OUTSIDE_SERVICES) as run:
        run.wait_for("migrating")

        with start(tmp_path / "two", environment=OUTSIDE_SERVICES, port=run.port) as second:
            assert second.wait() == 2

    assert f"127.0.0.1:{run.port} is in use" in second.output


def test_wrong_arguments_get_the_usage() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "controlplane.supervisor", "walk"],
        cwd=harness.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 2
    assert result.stderr.startswith("usage: ")
