"""Defaults that no two calls share, and bugs that no default hides."""

import pytest

from switchgear import Fallback, Policy
from switchgear.llm.providers import chain
from switchgear.patterns.answers import latest_answer
from tests.patterns.failing_calls import Down, fails


@pytest.mark.parametrize("default", [{"sql": None}, ["nothing"], {"nothing"}])
def test_mutable_default_is_copied_for_each_call(default):
    ask = Fallback("a", default=default)(fails)

    first = ask()
    first.clear()

    assert ask() == default != first
    assert type(ask()) is type(default)


def test_mutable_default_of_a_block_is_copied_too():
    fallback = Fallback("a", default=["nothing"])

    with fallback.catching() as held:
        fails()
    held.value.clear()
    with fallback.catching() as held:
        fails()

    assert held.value == ["nothing"]


def test_other_default_is_the_same_object():
    default = object()

    assert Fallback("a", default=default).run(fails).value is default


def test_default_factory_makes_one_for_each_call():
    made = iter("ab")
    ask = Fallback("a", default_factory=lambda: next(made))(fails)

    assert [ask(), ask()] == ["a", "b"]
    assert (latest_answer().source, latest_answer().is_partial) == ("default", True)


def test_default_factory_is_not_called_for_a_call_that_does_well():
    ask = Fallback("a", default_factory=fails)(lambda: "fine")

    assert ask() == "fine"


def test_default_factory_that_fails_leaves_the_error_of_the_call():
    ask = Fallback("a", default_factory=lambda: {}["missing"])(fails)

    with pytest.raises(Down) as raised:
        ask()

    assert raised.value.__notes__ == ["fallback default of a: KeyError: 'missing'"]


def test_default_factory_of_the_code_follows_a_chain():
    of_code = Fallback("mine", default_factory=list)
    document = {"chain": [{"provider": "a"}, {"provider": "b"}]}

    found = chain(document, {"b": fails}).followed_by(of_code)

    assert found.run(fails).value == []
    assert found.has_any


def test_default_and_its_factory_together_are_refused():
    with pytest.raises(ValueError, match="default or default_factory"):
        Fallback("a", default=None, default_factory=list)
    with pytest.raises(TypeError, match="default_factory"):
        Fallback("a", default_factory=[])


def misspelt():
    return no_such_name  # noqa: F821


def unbound():
    found = later  # noqa: F821
    later = 1
    return found, later


def not_installed():
    import no_such_module  # noqa: F401


def not_python():
    compile("def", "mistake", "exec")


def in_a_group():
    raise ExceptionGroup("two", [Down("away"), NameError("answr")])


MISTAKES = [misspelt, unbound, not_installed, not_python, in_a_group]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_in_the_code_is_never_answered_for(mistake):
    calls = []
    fallback = Fallback("a", lambda: calls.append(1), default="nothing")
    of_policy = Policy("a", fallback=lambda: calls.append(1))
    of_chain = chain([{"provider": "a"}, {"provider": "b"}], {"b": lambda: calls.append(1)})

    for run in (fallback.run, of_policy.run, of_chain.run):
        with pytest.raises((NameError, ImportError, SyntaxError, ExceptionGroup)):
            run(mistake)
    with pytest.raises((NameError, ImportError, SyntaxError, ExceptionGroup)), fallback.catching():
        mistake()

    assert calls == []


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_answered_for_where_on_says_so(mistake):
    assert Fallback("a", default="nothing", on=Exception)(mistake)() == "nothing"


@pytest.mark.parametrize("error", [KeyError("rows"), TypeError("None"), AttributeError("text")])
def test_error_that_a_changed_answer_may_cause_is_answered_for(error):
    def strange():
        raise error

    assert Fallback("a", default="nothing")(strange)() == "nothing"
