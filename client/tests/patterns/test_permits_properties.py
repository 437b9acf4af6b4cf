"""The permit pool agrees with naive lists in any sequence of operations."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from switchgear.patterns.parameters import BulkheadParameters
from switchgear.patterns.permits import PermitPool, Waiter
from tests.hypothesis_examples import examples

KEYS = st.sampled_from([None, None, "u1", "u2"])
PARAMETERS = st.one_of(
    st.none(),
    st.builds(
        lambda limit, queue, per_key: BulkheadParameters(
            limit=limit, queue=queue, queue_seconds=1, per_key_limit=per_key
        ),
        st.integers(1, 4),
        st.integers(0, 3),
        st.one_of(st.none(), st.integers(1, 2)),
    ),
)


class Naive(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.given = BulkheadParameters(limit=2, queue=2, queue_seconds=1)
        self.permits = PermitPool(self.given)
        self.inside = []
        self.line = []
        self.arrived = 0
        self.woken = set()

    def may(self, key):
        if self.given is None:
            return True
        most = self.given.per_key_limit
        full = most is not None and key is not None and self.inside.count(key) >= most
        return len(self.inside) < self.given.limit and not full

    def serve(self):
        """Scan the queue from its beginning again after each admission."""
        while True:
            ordered = sorted(self.line, key=lambda each: (-each["priority"], each["n"]))
            nexts = [each for each in ordered if self.may(each["key"])]
            if not nexts:
                return
            self.line.remove(nexts[0])
            self.inside.append(nexts[0]["key"])
            assert nexts[0]["waiter"].state == "admitted"
            assert nexts[0]["n"] in self.woken

    @precondition(lambda self: self.inside)
    @rule(data=st.data())
    def put_back(self, data):
        """Release a permit like decorated functions do."""
        key = data.draw(st.sampled_from(self.inside))
        self.inside.remove(key)
        if key is None:
            self.permits.put_back(None)
        else:
            self.permits.put_back_key(key)
        if self.permits.busy:
            self.permits.settle()
        self.serve()

    @rule(key=KEYS)
    def take(self, key):
        expected = self.may(key)
        assert self.permits.acquire(key) == expected
        if expected:
            self.inside.append(key)

    @rule(key=KEYS, priority=st.integers(0, 2))
    def enqueue(self, key, priority):
        self.arrived += 1
        n = self.arrived
        got = Waiter(key, priority, lambda: self.woken.add(n))
        self.permits.enqueue(got)
        if self.may(key):
            assert got.state == "admitted"
            assert n not in self.woken
            self.inside.append(key)
            return
        if len(self.line) >= self.given.queue:
            last = max(self.line, key=lambda each: (-each["priority"], each["n"]), default=None)
            if last is None or not self.given.queue or last["priority"] >= priority:
                assert got.state == "rejected"
                return
            assert last["waiter"].state == "displaced"
            assert last["n"] in self.woken
            self.line.remove(last)
        assert got.state == "waiting"
        self.line.append({"n": n, "key": key, "priority": priority, "waiter": got})

    @precondition(lambda self: self.inside)
    @rule(data=st.data())
    def give(self, data):
        key = data.draw(st.sampled_from(self.inside))
        self.inside.remove(key)
        self.permits.release(key)
        self.serve()

    @precondition(lambda self: self.line)
    @rule(data=st.data())
    def leave(self, data):
        each = data.draw(st.sampled_from(self.line))
        self.line.remove(each)
        if data.draw(st.booleans()):
            assert self.permits.dequeue(each["waiter"]) == "gone"
        else:
            self.permits.abandon(each["waiter"])

    @rule(given=PARAMETERS)
    def configure(self, given):
        self.given = given
        self.permits.configure(given)
        self.serve()

    @invariant()
    def the_same_are_inside_and_wait(self):
        look = self.permits.occupancy()
        assert (look.in_flight, look.queued) == (len(self.inside), len(self.line))
        assert all(each["waiter"].state == "waiting" for each in self.line)


Naive.TestCase.settings = examples(100, stateful_step_count=40)
test_places_do_what_naive_lists_do = Naive.TestCase
