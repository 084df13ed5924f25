"""The one rule for text at every door (C46)."""

from __future__ import annotations

from typing import Any

import pytest

from runtime_app.errors import FieldErrors
from runtime_app.texts import check_key, check_nonce, check_ref, check_text


@pytest.mark.parametrize(
    "value",
    ["café-1", "cafe\u0301-1", "ORD\u200b-1", "ORD-1 ", " ORD-1", "\u041eRD-1", "ORD\u202e-1", "", "a" * 201, "a\x00b",
     "\ud800", "-x", "a b", "a\n", None, 5, True, ["a"]],
)
def test_references_and_keys_that_could_look_alike_are_refused(value: Any) -> None:
    with pytest.raises(FieldErrors) as refused:
        check_ref(value, "order_ref")
    assert "order_ref" in refused.value.errors
    with pytest.raises(FieldErrors):
        check_key(value)


def test_plain_references_pass_unchanged() -> None:
    assert check_ref("ORD-1001/a_b:c.d#1@x+y=z~", "order_ref") == "ORD-1001/a_b:c.d#1@x+y=z~"
    assert check_ref("ord-1", "r") != check_ref("ORD-1", "r")


@pytest.mark.parametrize(
    "value", ["a\x00b", "\ud800", "x\x1b[31m", "zero\u200bwidth", "rtl\u202e", "bom\ufeff", "a" * 501]
)
def test_text_with_hidden_characters_is_refused(value: str) -> None:
    with pytest.raises(FieldErrors):
        check_text(value, "reason", most=500)


def test_text_is_composed_and_keeps_what_people_write() -> None:
    assert check_text("cafe\u0301\r\n„Zürich“ 日本 👍", "reason", most=500) == "café\n„Zürich“ 日本 👍"


@pytest.mark.parametrize("value", ["", "short", "n" * 65, "spaces in it here ok", None])
def test_a_form_without_its_own_number_is_refused(value: Any) -> None:
    with pytest.raises(FieldErrors):
        check_nonce(value)
