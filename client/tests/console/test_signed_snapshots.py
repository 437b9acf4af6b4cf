"""With a public key, nothing is put in force that the console has not signed."""

import json
import time
import uuid
from collections.abc import Callable

import pytest

from controlplane.core.signatures import SigningKey, sign
from switchgear.clock import ConsoleClock, SystemTime
from switchgear.console.file_cache import SnapshotCache
from switchgear.console.signatures import make_parser
from switchgear.evaluation.snapshot import InvalidSnapshot
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.settings import Settings
from tests import faults
from tests.console.follower_parts import following
from tests.fake_console import TOKEN, Console, Exchange, chunk, console, document, entry
from tests.quick_client import QuickClient
from tests.wait_helpers import wait_until

KEY, OTHER_KEY = SigningKey.generate(), SigningKey.generate()
PUBLIC, OTHER_PUBLIC = (str(key.public) for key in (KEY, OTHER_KEY))
EPOCH = str(uuid.UUID(int=1))
ORDER, SECOND_ORDER = (str(uuid.UUID(int=number)) for number in (11, 12))
LATER = "2099-01-01T00:00:00Z"
WAYS = pytest.mark.parametrize(
    ("way", "stream_lie", "held_lie"),
    [
        ("stream", None, None),
        ("held", faults.another_page, None),
        ("poll", faults.another_page, faults.errors),
    ],
)
parse = make_parser([PUBLIC])


def signed_console(**fields):
    return console(signing_keys=(KEY,), **fields)


@WAYS
def test_signed_snapshots_and_orders_are_put_in_force(way, stream_lie, held_lie):
    with (
        signed_console(stream_lie=stream_lie, held_lie=held_lie) as there,
        following(there, public_keys=(PUBLIC,)) as here,
    ):
        wait_until(lambda: here.follower.way == way, 20, lambda: here.follower.error)
        there.engage("feature:chat")
        wait_until(lambda: here.blocks("chat"), 10)
        there.order("feature:search", ORDER)
        wait_until(lambda: here.blocks("search"), 10)
        there.close_order("feature:search", ORDER)
        wait_until(lambda: not here.blocks("search"), 10)
        there.release("feature:chat")
        wait_until(lambda: not here.blocks("chat"), 10)


def honest_but(change: Callable[[bytes], bytes], signature: Callable[[str], str] = str):
    """Answer with a changed document or signature of a next version, by polls and the stream."""

    def lie(exchange: Exchange) -> None:
        there = exchange.console
        there = Console(
            *(there.epoch, there.version + 1, there.published_at, there.entries),
            signing_keys=there.signing_keys,
        )
        body, header = change(there.document), signature(there.signature)
        if exchange.asked.path.endswith("/stream"):
            exchange.head(content_type="text/event-stream", transfer_encoding="chunked")
            line = b"signature: %b\n" % header.encode() if header else b""
            exchange.send(chunk(b"event: snapshot\n%bdata: %b\n\n" % (line, body)))
            exchange.rest(5)
        else:
            headers = {"switchgear_signature": header} if header else {}
            exchange.reply(200, body, **headers)

    return lie


def drop_switches(document: bytes) -> bytes:
    return json.dumps({**json.loads(document), "switches": []}).encode()


TAMPERED = pytest.mark.parametrize(
    ("lie", "error"),
    [
        (honest_but(drop_switches), "signature: wrong"),
        (honest_but(lambda body: body.replace(b"engaged", b"Engaged")), "signature: wrong"),
        (honest_but(lambda body: body[:-1]), "signature: wrong"),
        (honest_but(lambda body: body, lambda _signature: ""), "signature: missing"),
        (honest_but(lambda body: body, lambda _signature: "rubbish"), "signature: invalid"),
        (honest_but(lambda body: body, lambda text: text[:-4]), "signature: invalid"),
        (
            honest_but(lambda body: body, lambda _signature: sign(b"other", [KEY])),
            "signature: wrong",
        ),
        (
            honest_but(drop_switches, lambda _signature: sign(b"{}", [OTHER_KEY])),
            f"signature: unknown key ({OTHER_KEY.public.id})",
        ),
    ],
    ids=["switches", "word", "cut", "unsigned", "rubbish", "short", "other text", "other key"],
)


@TAMPERED
@pytest.mark.parametrize("stream", [True, False])
def test_document_without_a_valid_signature_is_refused_as_a_bad_answer(lie, error, stream, caplog):
    with signed_console() as there:
        there.engage("feature:chat")
        with following(there, public_keys=(PUBLIC,), stream=stream) as here:
            assert here.blocks("chat")
            version = there.version
            there.lie = lie
            there.cut()

            wait_until(
                lambda: here.follower.way == "down" and error in here.follower.error,
                10,
                lambda: here.follower.error,
            )
            wait_until(lambda: here.follower._failures > 3, 10)
            assert here.blocks("chat")
            assert here.store.view.version == version
            warnings = [each for each in caplog.messages if error in each]
            assert len(warnings) == 1
            assert "keeping the last snapshot" in warnings[0]

            there.lie = None
            there.release("feature:chat")
            wait_until(lambda: not here.blocks("chat"), 10)
            assert here.follower.error is None


def test_only_the_stream_is_tampered_with_and_polls_bring_the_truth():
    with signed_console(stream_lie=honest_but(drop_switches)) as there:
        there.engage("feature:chat")
        with following(there, public_keys=(PUBLIC,)) as here:
            wait_until(lambda: here.follower.way == "held", 20)
            assert here.blocks("chat")
            there.engage("feature:search")
            wait_until(lambda: here.blocks("search"), 10)


def test_during_a_rotation_either_key_is_enough():
    with console(signing_keys=(OTHER_KEY, KEY)) as there:
        there.engage("feature:chat")
        for keys in [(PUBLIC,), (OTHER_PUBLIC,), (PUBLIC, OTHER_PUBLIC)]:
            with following(there, public_keys=keys) as here:
                assert here.blocks("chat")


def test_client_status_says_that_snapshots_are_verified_and_why_none_is_in_force():
    with console(signing_keys=(OTHER_KEY,)) as there:
        there.engage("feature:chat")
        with QuickClient(there.url, TOKEN, state_dir=None, public_key=PUBLIC) as gear:
            wait_until(lambda: gear.status().error, 10)
            status = gear.status()
            assert status.error == f"signature: unknown key ({OTHER_KEY.public.id})"
            assert (status.verified, status.source) == (True, "none")
            assert gear.allowed(feature="chat")


def test_without_a_public_key_the_signature_does_not_matter():
    with signed_console(lie=honest_but(drop_switches)) as there:
        there.engage("feature:chat")
        with QuickClient(there.url, TOKEN, state_dir=None) as gear:
            assert gear.wait_ready()
            assert gear.allowed(feature="chat")
            assert not gear.status().verified


def published(version: int, *switches: str, epoch: str = EPOCH, **more) -> bytes:
    """Return a published document of engaged switches."""
    return document(epoch, version, {each: entry(each) for each in switches}, **more)


def format_time(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


def answer(body: bytes):
    return lambda exchange: exchange.reply(200, body, switchgear_signature=sign(body, [KEY]))


@pytest.mark.parametrize(
    ("old", "error"),
    [
        (published(4), "outdated snapshot"),
        (
            published(9, epoch=str(uuid.UUID(int=2)), published_at=format_time(time.time())),
            "outdated snapshot",
        ),
        (
            published(9, epoch=str(uuid.UUID(int=3)), published_at=format_time(time.time() - 7200)),
            "outdated snapshot: its epoch was published before the present one",
        ),
    ],
    ids=["version", "left epoch", "unknown epoch"],
)
def test_replayed_snapshot_is_refused_although_its_signature_is_valid(old, error):
    with (
        signed_console(epoch=str(uuid.UUID(int=2)), version=5) as there,
        following(there, public_keys=(PUBLIC,), stream=False) as here,
    ):
        there.epoch = EPOCH
        there.engage("feature:chat")
        wait_until(lambda: here.blocks("chat"), 10)

        there.lie = answer(old)

        wait_until(lambda: here.follower.error == error, 10, lambda: here.follower.error)
        assert here.blocks("chat")
        assert here.store.view.snapshot.epoch == EPOCH


def test_new_epoch_is_accepted_if_the_clock_is_a_little_behind():
    with signed_console() as there, following(there, public_keys=(PUBLIC,)) as here:
        there.engage("feature:chat")
        wait_until(lambda: here.blocks("chat"), 10)
        there.epoch = str(uuid.uuid4())
        there.entries, there.version = {}, 1
        there.published_at -= 60
        there.cut()
        wait_until(lambda: not here.blocks("chat"), 10)


def served(text: bytes, *rows: dict, opened=(), closed=(), hidden=None, **fields) -> bytes:
    """Return the published document `text` with the entries `rows` and emergency orders."""
    told = json.loads(text)
    entries = {row["id"]: row for row in told["switches"]} | {row["id"]: row for row in rows}
    emergency = {"open": list(opened), "closed": list(closed)}
    if hidden:
        emergency["hidden"] = hidden
    outer = {"switches": [*entries.values()], "emergency": emergency, "signed": text.decode()}
    return json.dumps({**told, **outer, **fields}).encode()


def accepted(*documents: tuple[bytes, bytes], store=None) -> SnapshotStore:
    """Return a store that has accepted these documents, each with the text that is signed."""
    store = store or SnapshotStore(ConsoleClock(SystemTime()))
    for body, text in documents:
        before = {} if store.snapshot is None else store.snapshot.entries
        store.accept(parse(body, sign(text, [KEY]), before))
    return store


def blocked(store: SnapshotStore, feature: str) -> bool:
    return not store.decide(None, feature, (), None).allowed


def test_addition_to_the_signed_text_can_only_block():
    text = published(7, "feature:chat", "feature:search")
    ramp = entry("feature:chat", state="ramping", allow_percent=100)
    expired = entry("feature:search", on_expiry="release", expires_at="2020-01-01T00:00:00Z")
    extra = entry("feature:more")
    body = served(text, ramp, expired, extra, entry("feature:all", state="ramping"))

    store = accepted((body, text))

    assert all(blocked(store, each) for each in ("chat", "search", "more"))
    assert "feature:all" not in store.view.entries


def test_switch_left_out_of_the_addition_stays_blocked():
    text = published(7, "feature:chat")
    body = served(text, switches=[])

    assert blocked(accepted((body, text)), "chat")


def test_expired_entry_does_not_replace_a_signed_ramp():
    rows = {"feature:chat": entry("feature:chat", state="ramping", allow_percent=0.0)}
    text = document(EPOCH, 7, rows)
    expired = entry("feature:chat", on_expiry="release", expires_at="2020-01-01T00:00:00Z")

    store = accepted((served(text, expired), text))

    assert store.view.entries["feature:chat"].state == "ramping"


def test_order_over_a_ramp_or_an_expiring_engagement_blocks_until_it_is_closed():
    rows = {
        "feature:chat": entry("feature:chat", state="ramping", allow_percent=100),
        "feature:search": entry("feature:search", on_expiry="release", expires_at=LATER),
    }
    text = document(EPOCH, 7, rows)
    orders = [
        entry("feature:chat", emergency=ORDER),
        entry("feature:search", emergency=SECOND_ORDER),
    ]
    body = served(text, *orders, opened=[ORDER, SECOND_ORDER])
    store = accepted((body, text))
    assert store.view.orders.ids == (ORDER, SECOND_ORDER)
    assert blocked(store, "chat")

    after = document(EPOCH, 8, rows, orders=((), (ORDER, SECOND_ORDER)))
    accepted((after, after), store=store)
    assert not blocked(store, "chat")
    assert blocked(store, "search")


def test_order_is_closed_by_the_signed_text_alone():
    text, later = published(7), published(8)
    body = served(text, entry("feature:chat", emergency=ORDER), opened=[ORDER])
    store = accepted((body, text))

    accepted((served(later, closed=[ORDER]), later), store=store)
    assert blocked(store, "chat")

    final = published(9, orders=((), (ORDER,)))
    accepted((final, final), store=store)
    assert not blocked(store, "chat")


def test_closed_order_does_not_hide_the_signed_ramp_of_its_switch():
    rows = {"feature:chat": entry("feature:chat", state="ramping", allow_percent=0.0)}
    text = document(EPOCH, 7, rows, orders=((), (ORDER,)))
    body = served(text, entry("feature:chat", emergency=ORDER), opened=[ORDER])

    store = accepted((body, text))

    assert store.view.entries["feature:chat"].state == "ramping"


def test_known_order_keeps_its_switch():
    text = published(7)
    body = served(text, entry("feature:chat", emergency=ORDER), opened=[ORDER])
    store = accepted((body, text))

    moved = served(text, entry("feature:other", emergency=ORDER), opened=[ORDER])
    accepted((moved, text), store=store)
    later = published(8)
    accepted((later, later), store=store)

    assert blocked(store, "chat")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (served(published(7), version=8), published(7)),
        (served(published(7), epoch=str(uuid.UUID(int=2))), published(7)),
        (served(published(7), signed=published(8).decode()), published(7)),
        (served(published(7), signed="\ud800"), published(7)),
        (served(published(7), signed=published(7).decode() + " "), published(7)),
        (served(published(7), signed=None), published(7)),
        (served(published(7), signed={"schema": 1}), published(7)),
    ],
    ids=["version", "epoch", "other", "surrogate", "space", "none", "object"],
)
def test_signed_text_that_does_not_fit_is_refused(body, text):
    with pytest.raises(InvalidSnapshot):
        parse(body, sign(text, [KEY]), {})


def test_switch_called_signed_is_no_signed_text():
    text = published(7, "feature:signed")
    assert blocked(accepted((text, text)), "signed")


def settings(folder, public_keys=(PUBLIC,)):
    return Settings(
        url="https://there", token="t", state_dir=folder, service="core", instance="a1",
        public_keys=public_keys,
    )  # fmt: skip


def restored(folder, **more) -> SnapshotStore:
    store = SnapshotStore(ConsoleClock(SystemTime()))
    SnapshotCache(settings(folder, **more)).restore(store)
    return store


def test_cached_copy_is_verified_with_its_signature(tmp_path):
    text = published(7, "feature:chat")
    body = served(text, entry("feature:search", emergency=ORDER), opened=[ORDER])
    SnapshotCache(settings(tmp_path)).save(accepted((body, text)))

    store = restored(tmp_path)

    assert blocked(store, "chat")
    assert blocked(store, "search")
    assert restored(tmp_path, public_keys=None).view.version == 7


@pytest.mark.parametrize("signature", ["", sign(published(7, "feature:chat"), [OTHER_KEY])])
def test_cached_copy_without_a_valid_signature_is_refused_and_replaced(tmp_path, signature, caplog):
    store = SnapshotStore(ConsoleClock(SystemTime()))
    store.accept(make_parser(None)(published(9, "feature:chat"), signature, {}))
    SnapshotCache(settings(tmp_path, public_keys=None)).save(store)

    assert restored(tmp_path).snapshot is None
    assert "was not read: signature: " in caplog.text
    text = published(7, "feature:chat")
    SnapshotCache(settings(tmp_path)).save(accepted((text, text)))
    assert restored(tmp_path).view.version == 7


def test_signature_is_cached_by_a_client_without_a_key_too(tmp_path):
    with signed_console() as there:
        there.engage("feature:chat")
        with following(there, state_dir=tmp_path) as here:
            assert here.blocks("chat")
        with following(there, is_heard=False, state_dir=tmp_path, public_keys=(PUBLIC,)) as here:
            there.lie = faults.errors
            assert here.blocks("chat")


def test_bootstrap_is_verified(tmp_path, caplog):
    text = published(7, "feature:chat").decode()
    file = {"snapshot": text, "confirmed_at": format_time(time.time())}
    for signature, is_blocked in [(sign(text.encode(), [KEY]), True), ("", False)]:
        bootstrap = {**file, "signature": signature}
        arguments = {"state_dir": None, "public_key": PUBLIC, "offline": True}
        with QuickClient("https://there", bootstrap=bootstrap, **arguments) as gear:
            assert gear.allowed(feature="chat") is not is_blocked
            assert (gear.status().source == "bootstrap") is is_blocked
    assert "bootstrap mapping ignored: signature: missing" in caplog.text
    with QuickClient("https://there", bootstrap=json.loads(text), **arguments) as gear:
        assert gear.allowed(feature="chat")
    assert "bootstrap mapping ignored: It is not a published snapshot." in caplog.text


def test_verification_of_a_thousand_engaged_switches_takes_less_than_a_millisecond():
    rows = {
        f"feature:f{number:04}": entry(f"feature:f{number:04}", reason="a test has engaged " * 4)
        for number in range(1000)
    }
    text = document(EPOCH, 7, rows)
    signature = sign(text, [KEY])
    verify = parse.args[0].verify
    took = []
    for _ in range(50):
        began = time.perf_counter()
        verify(signature, text)
        took.append(time.perf_counter() - began)
    assert min(took) < 0.001


def test_calls_are_decided_while_large_documents_are_verified():
    """The slowest of many decisions shows whether one ever waits for the verification."""

    def slowest(public_keys) -> float:
        with console(signing_keys=(KEY,)) as there:
            there.entries = {
                f"feature:f{number:05}": entry(f"feature:f{number:05}") for number in range(5000)
            }
            arguments = {"state_dir": None, "public_key": public_keys}
            with QuickClient(there.url, TOKEN, **arguments) as gear:
                assert gear.wait_ready()
                worst, until = 0.0, time.perf_counter() + 1.5
                next_at = 0.0
                while (now := time.perf_counter()) < until:
                    if now > next_at:
                        there.version += 1
                        there.cut()
                        next_at = now + 0.3
                    began = time.thread_time()
                    gear.allowed(feature="f00001")
                    worst = max(worst, time.thread_time() - began)
                assert gear.status().version > 1
                return worst

    assert slowest(PUBLIC) < max(0.001, 5 * slowest(None))


def test_console_of_these_tests_signs_as_the_control_plane_does():
    there = Console(signing_keys=(KEY,))
    there.order("feature:chat", ORDER)
    assert json.loads(there.document)["signed"] == there.published.decode()
    parse(there.document, there.signature, {})
