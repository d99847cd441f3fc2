"""What an operator got wrong about models is said before the start."""

import pytest

from chat.checks import check_default_model


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("groq/llama", "Groq is not configured: set GROQ_API_KEY"),
        ("openai", "names a provider but no model of it"),
        ("openai/", "names a provider but no model of it"),
    ],
)
def test_default_model_that_nobody_can_have_is_an_error(settings, reference, said):
    settings.OPENAI_API_KEY = "k"
    settings.NOTEWIRE_DEFAULT_MODEL = reference

    [error] = check_default_model()

    assert error.msg.startswith("NOTEWIRE_DEFAULT_MODEL: ")
    assert said in error.msg


@pytest.mark.parametrize("reference", ["", "openai/gpt-99", "gpt-99", "meta/llama", "demo"])
def test_default_model_that_somebody_may_have_is_none(settings, reference):
    settings.OPENAI_API_KEY = "k"
    settings.NOTEWIRE_DEFAULT_MODEL = reference

    assert check_default_model() == []


def test_default_model_without_any_provider_is_an_error(settings):
    settings.NOTEWIRE_DEFAULT_MODEL = "gpt-99"

    [error] = check_default_model()

    assert "the demo alone is here" in error.msg


def test_demo_that_is_switched_off_is_no_default(settings):
    settings.NOTEWIRE_DEFAULT_MODEL = "demo"
    settings.NOTEWIRE_DEMO = False

    [error] = check_default_model()

    assert "No model is connected" in error.msg
