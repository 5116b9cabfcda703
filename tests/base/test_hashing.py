"""Canonical JSON, hashes, signature lines."""

import pytest
from empathy_eval.base.hashing import canonical_json, derived_random, digest, signature_line


def test_canonical_json_does_not_depend_on_the_order_of_keys() -> None:
    assert canonical_json({"b": 1, "a": "ü"}) == '{"a":"ü","b":1}'.encode() == canonical_json({"a": "ü", "b": 1})


def test_canonical_json_refuses_what_json_does_not_have() -> None:
    with pytest.raises(ValueError):
        canonical_json(float("nan"))
    with pytest.raises(TypeError):
        canonical_json({1, 2})


def test_a_digest_names_its_scheme_and_is_the_one_of_sha256sum() -> None:
    # printf '{}' | sha256sum
    assert digest({}) == "s1-44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


def test_a_signature_line_keeps_the_order_given() -> None:
    assert signature_line(tok="13a", smooth="exp") == "tok:13a|smooth:exp"


def test_derived_randomness_depends_on_its_parts_alone() -> None:
    first = derived_random(1, "plan", 17, 3).random()
    derived_random(1, "plan", 17, 4).random()
    assert derived_random(1, "plan", 17, 3).random() == first != derived_random(2, "plan", 17, 3).random()
