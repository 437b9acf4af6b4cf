"""The console's chain of providers: order, models, conditions and the final error."""

import asyncio
from pathlib import Path

import pytest
import yaml

from switchgear.journal import add_hook
from switchgear.llm import providers
from switchgear.llm.providers import ProviderUnavailable, chain
from switchgear.patterns.answers import latest_answer
from switchgear.patterns.caches import MemoryCache
from switchgear.refusals import CircuitOpen

CONFIG = Path(__file__).parents[3] / "config" / "fallback.yaml"


class RateLimitError(Exception):
    status_code = 429


class BadRequestError(Exception):
    status_code = 400


class ServerError(Exception):
    status_code = 503


@pytest.fixture
def document():
    return yaml.safe_load(CONFIG.read_text())["fallbacks"]["oracle->openai"]


@pytest.fixture
def fallback_entries():
    entries = []
    end = add_hook(lambda entry: entry.name == "llm_call_fallback" and entries.append(entry))
    yield entries
    end()


@pytest.fixture(autouse=True)
def _nothing_warned():
    providers._warned.clear()


class Provider:
    def __init__(self, **outcomes):
        self.outcomes = outcomes
        self.asked = []

    def __call__(self, prompt, model="gpt-4o"):
        self.asked.append(model)
        outcome = self.outcomes[model.replace("-", "_")]
        if isinstance(outcome, Exception):
            raise outcome
        return f"{outcome} to {prompt}"


def test_configured_chain_is_gone_through_in_order_and_each_move_is_noted(
    document, fallback_entries
):
    openai = Provider(gpt_4o=TimeoutError("30 s"), gpt_4o_mini=RateLimitError("slow down"))
    claude, ollama = Provider(claude=ServerError("away")), Provider(local="an answer")

    @chain(
        document,
        {"openai": openai, "anthropic": claude, "ollama": ollama},
        name="oracle->openai",
        cache=MemoryCache(60),
        environment={"ANTHROPIC_API_KEY": "sk-1", "ENVIRONMENT": "development"},
    )
    def ask(prompt):
        return openai(prompt)

    assert ask("why") == "an answer to why"
    assert openai.asked == ["gpt-4o", "gpt-4o-mini"]
    assert latest_answer().source == "ollama/local"
    assert not latest_answer().is_partial
    assert {entry.about for entry in fallback_entries} == {"oracle->openai"}
    assert [dict(entry.fields) for entry in fallback_entries] == [
        {
            "provider": "openai",
            "from_model": "gpt-4o",
            "to_model": "gpt-4o-mini",
            "reason": "timeout",
        },
        {
            "provider": "anthropic",
            "from_model": "gpt-4o-mini",
            "to_model": "claude",
            "reason": "rate_limit",
        },
        {
            "provider": "ollama",
            "from_model": "claude",
            "to_model": "local",
            "reason": "HTTP 503",
        },
    ]


def test_provider_with_an_unmet_condition_is_skipped(document, fallback_entries):
    environment = {}
    openai = Provider(gpt_4o=TimeoutError(), gpt_4o_mini=TimeoutError())
    claude = Provider(claude="claude's answer")
    ask = chain(document, {"openai": openai, "anthropic": claude}, environment=environment)(openai)

    with pytest.raises(ProviderUnavailable):
        ask("why")
    assert claude.asked == []

    environment["ANTHROPIC_API_KEY"] = "sk-1"
    assert ask("why") == "claude's answer to why"
    assert fallback_entries[-1].fields["reason"] == "timeout"


def test_exhausted_chain_raises_the_consoles_error(document):
    openai = Provider(gpt_4o=TimeoutError("first"), gpt_4o_mini=ServerError("second"))
    ask = chain(document, {"openai": openai}, environment={})(openai)

    with pytest.raises(ProviderUnavailable) as raised:
        ask("why")

    assert (raised.value.code, raised.value.status) == ("EXTERNAL_SERVICE_ERROR", 502)
    assert str(raised.value) == "AI 서비스가 일시적으로 사용 불가능합니다"
    assert str(raised.value.__cause__) == "first"
    assert raised.value.__cause__.__notes__ == [
        "fallback openai/gpt-4o-mini of llm: ServerError: second"
    ]


def test_cache_comes_after_the_providers_and_is_partial(document):
    openai = Provider(gpt_4o="an answer", gpt_4o_mini=ServerError())
    ask = chain(document, {"openai": openai}, cache=MemoryCache(60), environment={})(openai)
    ask("why")
    openai.outcomes["gpt_4o"] = ServerError()

    assert ask("why") == "an answer to why"
    assert (latest_answer().source, latest_answer().is_partial) == ("cache", True)


def test_open_breaker_moves_on_and_a_request_that_is_itself_wrong_does_not(document):
    openai = Provider(gpt_4o=CircuitOpen("oracle->openai"), gpt_4o_mini="an answer")
    ask = chain(document, {"openai": openai}, environment={})(openai)

    assert ask("why") == "an answer to why"
    openai.outcomes["gpt_4o"] = BadRequestError("no such field")
    with pytest.raises(BadRequestError):
        ask("why")
    too_long = BadRequestError("too long")
    too_long.code = "context_length_exceeded"
    openai.outcomes["gpt_4o"] = too_long
    assert ask("why") == "an answer to why"


def test_unknown_entries_are_left_out_with_one_warning_each(caplog):
    document = {
        "chain": [
            {"provider": "openai", "model": "gpt-4o", "role": "primary"},
            {"provider": "mistral", "model": "large"},
            {"provider": "openai", "model": "mini", "only_if": "the moon is full"},
            "3 retries",
            {"cache": "Query Node cache"},
            7,
        ]
    }
    openai = Provider(gpt_4o=TimeoutError("slow"), mini="never")

    for _ in range(2):
        ask = chain(document, {"openai": openai})(openai)
        with pytest.raises(TimeoutError):
            ask("why")

    messages = [record.getMessage() for record in caplog.records if "chain" in record.getMessage()]
    assert len(messages) == 5
    assert openai.asked == ["gpt-4o", "gpt-4o"]


@pytest.mark.parametrize("document", [{}, {"chain": None}, {"chain": "openai"}, {"chain": 5}, []])
def test_empty_chain_raises_the_calls_own_error(document):
    openai = Provider(gpt_4o=TimeoutError("slow"))

    with pytest.raises(TimeoutError, match="slow"):
        chain(document, {"openai": openai})(openai)("why")


def test_callable_for_one_model_goes_before_that_of_its_provider():
    calls = {"openai": lambda prompt: "provider", "openai/mini": lambda prompt: "model"}
    document = [{"provider": "openai", "model": "gpt-4o"}, {"provider": "openai", "model": "mini"}]

    answer = chain(document, calls).run(Provider(gpt_4o=TimeoutError()), "why")

    assert answer.value == "model"


def test_conditions_of_ones_own_decide():
    document = [{"provider": "a"}, {"provider": "b", "only_if": "at night"}]
    is_night = False
    ask = chain(
        document, {"b": lambda: "b's"}, conditions={"at night": lambda: is_night}, default="none"
    )

    def fails():
        raise TimeoutError

    assert ask(fails)() == "none"
    is_night = True
    assert ask(fails)() == "b's"


def test_prompts_and_provider_messages_are_not_noted(document, fallback_entries, caplog):
    caplog.set_level("DEBUG", "switchgear")
    openai = Provider(gpt_4o=ServerError("refused: my secret prompt"), gpt_4o_mini="fine")

    chain(document, {"openai": openai}, environment={})(openai)("my secret prompt")

    assert "my secret prompt" not in repr(fallback_entries) + caplog.text


def test_coroutine_functions_are_awaited(document):
    async def ask(prompt, model="gpt-4o"):
        await asyncio.sleep(0)
        if model == "gpt-4o":
            raise RateLimitError
        return model

    guarded = chain(document, {"openai": ask}, environment={})(ask)

    assert asyncio.run(guarded("why")) == "gpt-4o-mini"


def test_providers_that_are_generator_functions_stream(document, fallback_entries):
    def openai(prompt, model="gpt-4o"):
        if model == "gpt-4o":
            raise RateLimitError
        yield from (model, prompt)

    guarded = chain(document, {"openai": openai}, environment={})(openai)

    assert list(guarded("why")) == ["gpt-4o-mini", "why"]
    assert latest_answer().source == "openai/gpt-4o-mini"
    assert [entry.fields["reason"] for entry in fallback_entries] == ["rate_limit"]


def test_providers_that_are_asynchronous_generator_functions_stream(document):
    async def openai(prompt, model="gpt-4o"):
        await asyncio.sleep(0)
        if model == "gpt-4o":
            raise RateLimitError
        for each in (model, prompt):
            yield each

    async def collected():
        guarded = chain(document, {"openai": openai}, environment={})(openai)
        return [each async for each in guarded("why")]

    assert asyncio.run(collected()) == ["gpt-4o-mini", "why"]


def test_unanswered_stream_raises_the_consoles_error(document):
    def openai(prompt, model="gpt-4o"):
        raise RateLimitError
        yield

    with pytest.raises(ProviderUnavailable) as raised:
        list(chain(document, {"openai": openai}, environment={})(openai)("why"))

    assert raised.value.code == "EXTERNAL_SERVICE_ERROR"


def test_same_call_is_not_made_again_under_the_name_of_another_model(document, caplog):
    models = []

    def openai(prompt):
        models.append(prompt)
        raise TimeoutError("slow")

    with pytest.raises(ProviderUnavailable):
        chain(document, {"openai": openai}, environment={})(openai)("why")

    assert models == ["why"]
    assert "takes no model" in caplog.text


@pytest.mark.parametrize("status", [True, False, 0, 200, 302, 399, 600, 10**9, "503", None, 503.0])
def test_status_that_says_no_error_is_a_bad_gateway(status):
    document = [{"provider": "openai"}, {"error": "LLM_DOWN", "status": status}]

    with pytest.raises(ProviderUnavailable) as raised:
        chain(document, {}).run(Provider(gpt_4o=TimeoutError()), "why")

    assert (raised.value.status, type(raised.value.status)) == (502, int)


@pytest.mark.parametrize("status", [400, 429, 503, 599])
def test_only_error_statuses_are_accepted(status):
    document = [{"provider": "openai"}, {"error": "LLM_DOWN", "status": status}]

    with pytest.raises(ProviderUnavailable) as raised:
        chain(document, {}).run(Provider(gpt_4o=TimeoutError()), "why")

    assert raised.value.status == status
