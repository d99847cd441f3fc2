from dataclasses import replace

import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import given
from hypothesis import strategies as st

from tools.policy import DECISIONS, DEFAULTS, EFFECTS, Policy, decide, operator_policy, parse_policy


def verdict(effect="write", *, ceiling=None, assistant=None, rules=None, **more):
    return decide(
        name="sample",
        effect=effect,
        ceiling=ceiling or {},
        assistant=assistant or {},
        rules=rules or {},
        **more,
    )


@pytest.mark.parametrize(
    ("effect", "decision"), [("read", "allow"), ("write", "allow"), ("external", "ask")]
)
def test_decide_follows_the_effect_when_nobody_said_anything(effect, decision):
    found = verdict(effect)
    assert found.decision == decision
    assert effect in found.reason


@pytest.mark.parametrize("word", DECISIONS)
@pytest.mark.parametrize("key", ["sample", "external"])
def test_decide_follows_the_operator(key, word):
    found = verdict("external", ceiling={key: word})
    assert found.decision == word
    assert "NOTEWIRE_TOOL_POLICY" in found.reason


def test_decide_lets_the_name_win_over_the_effect():
    assert verdict(ceiling={"write": "off", "sample": "allow"}).decision == "allow"


def test_decide_lets_a_rule_loosen_only_the_default():
    assert verdict("external", rules={"sample": "allow"}).decision == "allow"
    asked = verdict("external", rules={"sample": "allow"}, ceiling={"external": "ask"})
    assert asked.decision == "ask"
    asked = verdict("external", rules={"sample": "allow"}, assistant={"sample": "ask"})
    assert asked.decision == "allow" or "assistant" in asked.reason


def test_decide_ignores_rules_about_whole_effects():
    assert verdict("external", rules={"external": "allow"}).decision == "ask"


def test_decide_names_who_tightened():
    assert "assistant" in verdict(assistant={"sample": "off"}).reason
    assert "own rule" in verdict(rules={"sample": "ask"}).reason


said = st.dictionaries(st.sampled_from(["sample", "other", *EFFECTS]), st.sampled_from(DECISIONS))


@given(st.sampled_from(EFFECTS), said, said, said)
def test_decide_never_exceeds_the_operator(effect, ceiling, assistant, rules):
    found = verdict(effect, ceiling=ceiling, assistant=assistant, rules=rules)
    operator = ceiling.get("sample", ceiling.get(effect))
    if operator is not None:
        assert DECISIONS.index(found.decision) >= DECISIONS.index(operator)
    for voice in (assistant, {"sample": rules["sample"]} if "sample" in rules else {}):
        word = voice.get("sample", voice.get(effect))
        if word is not None and word != "allow":
            assert DECISIONS.index(found.decision) >= DECISIONS.index(word)


@given(st.sampled_from(EFFECTS), said, said)
def test_decide_allows_an_external_effect_only_on_somebodys_word(effect, assistant, rules):
    found = verdict(effect, assistant=assistant, rules=rules)
    if found.decision == "allow":
        assert DEFAULTS[effect] == "allow" or rules.get("sample") == "allow"


def test_decide_raises_on_a_decision_it_does_not_know():
    with pytest.raises(ValueError, match="not in tuple"):
        verdict(assistant={"sample": "perhaps"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", {}),
        (" , ", {}),
        ("note_update=ask,external=off", {"note_update": "ask", "external": "off"}),
        (" note_update = ASK , ", {"note_update": "ask"}),
        ({"note_update": "ask"}, {"note_update": "ask"}),
        ({}, {}),
    ],
)
def test_parse_policy_reads_text_and_mappings(value, expected):
    assert parse_policy(value) == expected


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("note_update", "'note_update' is not of the form"),
        ("note_update=maybe", "'note_update=maybe' is not of the form"),
        ("=ask", "'=ask' is not of the form"),
        ("a=ask=off", "'a=ask=off' is not of the form"),
        ("a=ask,a=off", "'a' comes twice"),
        ({"a": "sometimes"}, "'a=sometimes' is not of the form"),
    ],
)
def test_parse_policy_names_the_setting_and_the_faulty_entry(value, words):
    with pytest.raises(ImproperlyConfigured, match="^NOTEWIRE_TOOL_POLICY: ") as caught:
        parse_policy(value)
    assert words in str(caught.value)


def test_operator_policy_reads_the_setting(settings):
    settings.NOTEWIRE_TOOL_POLICY = "sample=off"
    assert operator_policy() == Policy(ceiling={"sample": "off"})


@pytest.mark.parametrize("effect", ["write", "external"])
def test_decide_asks_about_every_change_in_careful_mode(effect):
    assert verdict(effect, mode="careful").decision == "ask"
    assert verdict(effect, mode="careful", ceiling={effect: "allow"}).decision == "ask"
    assert verdict(effect, mode="careful", rules={"sample": "allow"}).decision == "allow"
    forced = verdict(effect, mode="careful", rules={"sample": "allow"}, ceiling={effect: "ask"})
    assert forced.decision == "ask"
    assert verdict("read", mode="careful").decision == "allow"


@pytest.mark.parametrize("effect", ["write", "external"])
@pytest.mark.parametrize("mode", ["balanced", "careful"])
def test_decide_asks_about_every_change_where_the_operator_is_careful(effect, mode, settings):
    settings.NOTEWIRE_APPROVAL_MODE = "careful"
    policy = replace(operator_policy(), rules={"sample": "allow"}, mode=mode)
    found = policy.decide("sample", effect)
    assert (found.decision, "NOTEWIRE_APPROVAL_MODE" in found.reason) == ("ask", True)
    assert policy.decide("sample", "read").decision == "allow"
    assert not policy.can_be_allowed("sample", effect)
    assert replace(policy, rules={"sample": "off"}).decide("sample", effect).decision == "off"


@pytest.mark.parametrize("effect", ["write", "external"])
def test_decide_asks_again_where_text_came_from_outside(effect):
    found = verdict(effect, tainted=True, rules={"sample": "allow"})
    assert (found.decision, "outside" in found.reason) == ("ask", True)
    assert verdict("read", tainted=True).decision == "allow"
    assert verdict(effect, tainted=True, ceiling={effect: "off"}).decision == "off"
