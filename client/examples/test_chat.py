"""How a service's tests stop things."""

from fastapi.testclient import TestClient
from fastapi_app import app

from switchgear.testing import Console, FakeClock, engaged

service = TestClient(app)
CHAT = "/chat?user=kim&department=finance"


def test_chat_says_that_it_is_stopped() -> None:
    with engaged("feature:chat", reason="a rehearsal"):  # for every client of the process
        assert service.get(CHAT).status_code == 503

    assert service.get(CHAT).status_code == 200


@engaged("segment:finance")
def test_finance_is_stopped_and_retail_goes_on() -> None:
    assert service.get(CHAT).json()["switch"] == "segment:finance"
    assert service.get("/chat?user=lee&department=retail").status_code == 200


def test_engagement_ends_by_itself() -> None:
    clock = FakeClock()
    console = Console(clock)
    gear = console.client()  # follows at once, without threads, network or disk

    console.engage("feature:chat", expires_in=60, on_expiry="release")
    assert not gear.allowed(feature="chat")
    clock.advance(65)
    assert gear.allowed(feature="chat")


def test_same_users_are_in_at_every_run() -> None:
    console = Console()
    gear = console.client()

    console.ramp("feature:chat", 50)
    users = ("kim", "lee", "choi", "park")
    allowed = [user for user in users if gear.allowed(feature="chat", targeting_key=user)]
    assert allowed == ["kim", "choi"]
