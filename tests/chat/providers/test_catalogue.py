"""Which provider answers for which reference, and what there is to choose from."""

import httpx
import pytest

from chat.exceptions import ModelUnknownError, NoProviderError, ProviderError
from chat.providers.catalogue import Catalogue, ModelInfo, configured
from chat.providers.demo import DemoProvider

OPENAI = "https://api.openai.com/v1/models"
OLLAMA = "http://ollama.test:11434/v1/models"


@pytest.fixture
def environment(settings):
    """Say what the operator's environment says; everything else is unset."""

    def configure(**variables):
        for name, value in variables.items():
            setattr(settings, name, value)

    return configure


@pytest.fixture
def catalogue(mocked):
    client, _ = mocked
    return Catalogue(client, demo_pace=0)


@pytest.fixture
def router(mocked):
    return mocked[1]


async def resolved(catalogue, reference=None):
    chosen = await catalogue.resolve(reference)
    return chosen.provider.name, chosen.model


def listing(*names, **fields):
    return httpx.Response(200, json={"data": [{"id": name} | fields for name in names]})


def test_providers_come_in_the_order_of_the_environment(environment):
    environment(
        OLLAMA_BASE_URL="http://ollama.test:11434", OPENROUTER_API_KEY="k", OPENAI_API_KEY="k"
    )
    assert [endpoint.name for endpoint in configured()] == ["openai", "openrouter", "ollama"]


@pytest.mark.parametrize(
    ("variables", "url"),
    [
        ({"OPENAI_API_KEY": "k"}, "https://api.openai.com/v1"),
        ({"OPENAI_BASE_URL": "http://x.test/v1/"}, "http://x.test/v1"),
        ({"OPENAI_BASE_URL": "http://x.test"}, "http://x.test"),
        ({"OLLAMA_BASE_URL": "http://x.test:1"}, "http://x.test:1/v1"),
        ({"OLLAMA_BASE_URL": "http://x.test:1/"}, "http://x.test:1/v1"),
        ({"LMSTUDIO_BASE_URL": "http://x.test/api"}, "http://x.test/api"),
        ({"LLAMACPP_BASE_URL": "http://x.test/v1"}, "http://x.test/v1"),
    ],
)
def test_address_of_a_provider(environment, variables, url):
    environment(**variables)
    (endpoint,) = configured()
    assert endpoint.base_url == url
    assert endpoint.local == (endpoint.name != "openai")


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:8000/v1", True),
        ("http://192.168.1.7:8000/v1", True),
        ("http://[::1]/v1", True),
        ("http://vllm:8000/v1", True),
        ("http://gpu.lan/v1", True),
        ("https://api.example.com/v1", False),
        ("https://8.8.8.8/v1", False),
    ],
)
def test_server_in_the_house_is_given_more_time(environment, url, local):
    environment(OPENAI_BASE_URL=url)
    assert configured()[0].local is local


async def test_demo_answers_where_nothing_is_configured(catalogue):
    chosen = await catalogue.resolve()
    assert isinstance(chosen.provider, DemoProvider)
    assert chosen.model == "demo"


async def test_nobody_answers_where_nothing_is_configured_and_the_demo_is_off(
    catalogue, environment
):
    environment(NOTEWIRE_DEMO=False)
    for reference in (None, "demo", "gpt-5"):
        with pytest.raises(NoProviderError):
            await catalogue.resolve(reference)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("openai/gpt-5", ("openai", "gpt-5")),
        ("openrouter/openai/gpt-5", ("openrouter", "openai/gpt-5")),
        ("gpt-5", ("openai", "gpt-5")),
        ("acme/gpt-5", ("openai", "acme/gpt-5")),
        (" openai/gpt-5 ", ("openai", "gpt-5")),
        ("demo", ("demo", "demo")),
        ("demo/demo", ("demo", "demo")),
    ],
)
async def test_reference_names_provider_and_model(catalogue, environment, reference, expected):
    environment(OPENAI_API_KEY="k", OPENROUTER_API_KEY="k")
    assert await resolved(catalogue, reference) == expected


async def test_provider_that_is_gone_is_said_with_its_variable(catalogue, environment):
    environment(OPENAI_API_KEY="k")
    with pytest.raises(NoProviderError, match="Groq is not configured: set GROQ_API_KEY"):
        await catalogue.resolve("groq/llama")


async def test_reference_without_a_model_is_unknown(catalogue, environment):
    environment(OPENAI_API_KEY="k")
    for reference in ("openai", "openai/"):
        with pytest.raises(ModelUnknownError):
            await catalogue.resolve(reference)


async def test_model_is_unknown_where_the_demo_alone_is_there(catalogue, environment):
    environment(NOTEWIRE_DEMO=True)
    for reference in ("gpt-5", "nobody/none"):
        with pytest.raises(ModelUnknownError, match="the demo alone"):
            await catalogue.resolve(reference)
    with pytest.raises(NoProviderError, match="Groq is not configured"):
        await catalogue.resolve("groq/llama")


async def test_default_model_comes_before_the_first(catalogue, environment):
    environment(OPENAI_API_KEY="k", GROQ_API_KEY="k", NOTEWIRE_DEFAULT_MODEL="groq/llama")
    assert await resolved(catalogue) == ("groq", "llama")
    assert await resolved(catalogue, "openai/gpt-5") == ("openai", "gpt-5")


async def test_first_model_that_can_chat_is_taken_and_remembered(catalogue, router, environment):
    environment(OPENAI_API_KEY="k")
    models = listing("text-embedding-3-small", "whisper-1", "gpt-5", "gpt-6")
    route = router.get(OPENAI).mock(return_value=models)
    for _ in range(2):
        assert await resolved(catalogue) == ("openai", "gpt-5")
    assert route.call_count == 1
    assert route.calls.last.request.headers["authorization"] == "Bearer k"


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, json={"data": []}),
        httpx.Response(200, json=None),
        httpx.Response(200, json={"data": [None, 3, {"id": 3}, {}]}),
        httpx.Response(404),
        httpx.Response(404, json={"detail": "Not Found"}),
        httpx.Response(200, text="nonsense"),
        httpx.Response(200, html="<html>"),
    ],
)
async def test_provider_without_a_list_is_asked_for_its_default(
    catalogue, router, environment, answer
):
    environment(OPENAI_BASE_URL="http://x.test")
    router.get("http://x.test/models").mock(return_value=answer)
    assert await resolved(catalogue) == ("openai", "default")


async def test_provider_in_trouble_is_said(catalogue, router, environment):
    environment(OPENAI_API_KEY="k")
    router.get(OPENAI).respond(401, json={"error": {"message": "bad"}})
    with pytest.raises(ProviderError, match="Check OPENAI_API_KEY"):
        await catalogue.resolve()


@pytest.mark.parametrize(
    ("body", "models"),
    [
        ([{"id": "a"}, {"id": "a"}], [("a", None, None)]),
        ({"data": [{"id": "models/gemini-x"}]}, [("gemini-x", None, None)]),
        (
            {"data": [{"id": "a", "context_length": 9, "supported_parameters": ["tools"]}]},
            [("a", True, 9)],
        ),
        (
            {"data": [{"id": "a", "capabilities": {"function_calling": False}}]},
            [("a", False, None)],
        ),
        ({"data": [{"id": "a", "max_model_len": "many", "capabilities": []}]}, [("a", None, None)]),
    ],
)
async def test_models_of_any_dialect_are_listed(catalogue, router, environment, body, models):
    environment(OLLAMA_BASE_URL="http://ollama.test:11434", NOTEWIRE_DEMO=False)
    router.get(OLLAMA).respond(200, json=body)
    listed = await catalogue.models()
    assert [(m.model, m.tools, m.context_length) for m in listed.models] == models
    assert listed.problems == {}


async def test_models_of_the_others_are_listed_where_one_fails(catalogue, router, environment):
    environment(OPENAI_API_KEY="k", OLLAMA_BASE_URL="http://ollama.test:11434")
    router.get(OPENAI).mock(return_value=listing("gpt-5"))
    router.get(OLLAMA).mock(side_effect=httpx.ConnectError("no"))
    listed = await catalogue.models()
    assert [model.reference for model in listed.models] == ["openai/gpt-5", "demo/demo"]
    assert listed.models[0] == ModelInfo("openai", "OpenAI", "gpt-5")
    assert listed.problems == {"ollama": "The connection to Ollama (ollama.test:11434) failed."}


async def test_provider_keeps_what_it_learned(catalogue, environment):
    environment(OPENAI_API_KEY="k")
    first, second = [await catalogue.resolve("openai/a") for _ in range(2)]
    assert first.provider is second.provider
    environment(OPENAI_API_KEY="other")
    assert (await catalogue.resolve("openai/a")).provider is not first.provider
