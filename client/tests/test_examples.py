"""The examples do what they show, run as a user runs them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fake_console import console
from tests.service_processes import EXAMPLES, ask, ask_json, environment, free_port, running
from tests.wait_helpers import wait_until

README = EXAMPLES.parent / "README.md"
TESTING = EXAMPLES.parents[1] / "docs" / "testing.md"


def run_quickstart(env: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "quickstart.py"],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_quickstart_has_no_more_than_ten_lines() -> None:
    assert len((EXAMPLES / "quickstart.py").read_text().splitlines()) <= 10


@pytest.mark.parametrize(
    ("example", "page"),
    [("quickstart.py", README), ("test_chat.py", TESTING), ("test_oracle.py", TESTING)],
)
def test_page_shows_the_example_as_it_is(example: str, page: Path) -> None:
    assert (EXAMPLES / example).read_text() in page.read_text()


def test_tests_of_the_page_on_testing_pass_as_they_stand(tmp_path: Path) -> None:
    [shown] = re.findall(
        r"^```python title=\"test_chat.py\"\n(.*?)```",
        TESTING.read_text(),
        re.DOTALL | re.MULTILINE,
    )
    (tmp_path / "test_chat.py").write_text(shown)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path],
        cwd=tmp_path,
        env={
            **environment(None, tmp_path),
            "PYTHONPATH": str(EXAMPLES.parent),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def test_tests_of_the_examples_pass_in_their_folder() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
        cwd=EXAMPLES,
        env={
            **os.environ,
            "PYTHONPATH": str(EXAMPLES.parent),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"rootdir: {EXAMPLES}" in done.stdout


@pytest.mark.slow
def test_quickstart_asks_the_console_and_remembers_when_that_is_gone(tmp_path: Path) -> None:
    with console() as there:
        env = environment(there, tmp_path)
        assert run_quickstart(env) == "Hello, Kim.\n"
        there.engage("feature:chat", reason="prompt injection reported")
        stopped = "Not now: feature:chat is stopped, prompt injection reported\n"
        assert run_quickstart(env) == stopped

    assert run_quickstart(env) == stopped


def test_quickstart_goes_on_without_any_console(tmp_path: Path) -> None:
    assert run_quickstart(environment(None, tmp_path)) == "Hello, Kim.\n"


@pytest.mark.timeout(240)
def test_fastapi_service_is_stopped_and_released(tmp_path: Path) -> None:
    port = free_port()
    at = f"http://127.0.0.1:{port}"
    chat = f"{at}/chat?user=kim&department=finance"
    story = f"{at}/story?user=kim"
    options = ["--interface", "asgi", "--host", "127.0.0.1", "--port", str(port)]
    with console() as there:
        env = environment(there, tmp_path)
        with running("granian", *options, "fastapi_app:app", folder=tmp_path, env=env) as service:
            wait_until(
                lambda: '"console"' in ask(f"{at}/health")[1], explain="the console is heard"
            )
            assert ask_json(chat) == (200, {"answer": "Hello, kim."})
            assert ask(story) == (200, "Once there was kim ")

            there.engage("segment:finance")
            there.engage("feature:story")
            wait_until(lambda: ask(chat)[0] == 503, explain="the chat is stopped for finance")
            wait_until(lambda: ask(story)[0] == 503, explain="the story is stopped")
            assert ask_json(chat)[1] == {
                "detail": "temporarily disabled",
                "switch": "segment:finance",
            }
            assert ask(f"{at}/chat?user=lee&department=retail")[0] == 200

            there.release("segment:finance")
            wait_until(lambda: ask(chat)[0] == 200, explain="the chat flows again")
            service.terminate()
            service.wait(30)

        last = there.reports[-1]
        checks = {row["switch"]: row for row in last["checks"]}
        assert last["service"] == "chat-api"
        assert checks["segment:finance"]["blocked"] >= 2
        assert checks["feature:story"]["blocked"] >= 1


@pytest.mark.timeout(240)
def test_django_service_is_stopped_in_every_forked_worker(tmp_path: Path) -> None:
    port = free_port()
    report = f"http://127.0.0.1:{port}/report?department=finance&user=kim"
    options = ["--preload", "--workers", "2", "--bind", f"127.0.0.1:{port}"]
    with console() as there:
        env = environment(there, tmp_path)
        options += ["--worker-tmp-dir", str(tmp_path), "--no-control-socket"]
        with running("gunicorn", *options, "django_app:application", folder=tmp_path, env=env):
            both: set[int] = set()

            def answers() -> bool:
                status, body = ask_json(report)
                both.update([body["worker"]] if status == 200 else [])
                return len(both) == 2

            wait_until(answers, explain="both workers answer")
            there.engage("feature:report")
            in_a_row = 0

            def is_stopped() -> bool:
                nonlocal in_a_row
                in_a_row = in_a_row + 1 if ask(report)[0] == 503 else 0
                return in_a_row == 20

            wait_until(is_stopped, explain="both workers say that it is stopped")
            assert ask_json(report)[1]["switch"] == "feature:report"
            there.release("feature:report")
            wait_until(lambda: ask(report)[0] == 200, explain="it flows again")
