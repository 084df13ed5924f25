"""What bad input gets: a problem that names the field, and nothing stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime_app.models import Session, Task
from tests.api.callers import Caller, assert_problem, refund, told
from tests.world import World

# C43: as they stand in the JSON text. Only a whole number in 1..10^15 is an amount.
AMOUNTS = [
    "true", "false", '"100"', "100.0", "1e2", "10.9", "-1", "0", "-0", "null", "[]", "{}", "NaN", "Infinity",
    "-Infinity", '"1_000"', '" 12 "', '"\uff11\uff10\uff10"', '"100\\n"', "1e400", "-1e400", "9223372036854775807",
    "9223372036854775808", "1000000000000001", "1" + "0" * 400, "-1" + "0" * 400, "1" * 6000, "1." + "0" * 400, "[100]",
]


OPTIONAL = ["payment_ref", "amount_minor", "currency", "reason", "session", "on_behalf_of", "metadata"]
METADATA = {
    '{"a": "\\u0000"}': "metadata.a", '{"a": ["\\ud800"]}': "metadata.a[0]", '{"\\u0000": 1}': "metadata.\\x00",
    '{"\\ud800": 1}': "metadata.\\ud800", '{"a": NaN}': "metadata.a", '{"a": 1e999}': "metadata.a",
    '{"a": ' + "9" * 500 + "}": "metadata.a", '{"a": "' + "x" * 9000 + '"}': "metadata", "[]": "metadata",
    '"x"': "metadata",
}
UNREADABLE = [
    b"{", b'{"a": 1_0}', b'{"a": 01}', b'{"a": \xef\xbc\x91}', b"{},", '{"a":1}'.encode("utf-16"), b'{"a": "\xc3"}',
    b'{"a": "\xed\xa0\x80"}', b"\xef\xbb\xbf{}", b"\x00",
]
# C46: each looks like a reference, or hides something.
LOOKALIKES = [
    "caf\u00e9-1", "cafe\u0301-1", "ORD-1\u200b", "ORD-1 ", " ORD-1", "\u041eRD-1", "ORD-1\u200f", "\uff2fRD-1",
    "ORD\u20111", "ORD-1\n", "", "-ORD", "x" * 201,
]
Refused = Callable[..., None]


def _with(name: str, value: str, **others: Any) -> bytes:
    """A request whose field has this JSON text as its value."""
    sent = json.dumps(refund("ORD-1", **{name: ..., **others}))
    return f'{sent[:-1]}, "{name}": {value}}}'.encode()


@pytest.fixture
def refused(shop: Caller, subtests: pytest.Subtests) -> Callable[..., None]:
    """Posts this body and expects this refusal of these fields, as a subtest; the tests go on after one that fails."""

    def post(raw: bytes, *fields: str, status: int = 422, code: str = "invalid", key: str = "k", **how: Any) -> None:
        with subtests.test(ascii(raw[:90]), key=key, **how):
            assert_problem(shop.post("/tasks", raw=raw, key=key, **how), status, code, *fields)
            assert not Task.objects.exists() and not Session.objects.exists()

    return post


def test_an_amount_is_a_whole_number_in_range_or_refused(refused: Refused, shop: Caller) -> None:
    """C43, M07."""
    for value in AMOUNTS:
        refused(_with("amount_minor", value), "amount_minor")
    for n, amount in enumerate((1, 10**15)):
        assert told(shop.post("/tasks", refund("ORD-1", amount_minor=amount), key=f"k{n}"))["amount_minor"] == amount


def test_a_name_given_twice_is_refused_also_deep_inside(refused: Refused) -> None:
    """C43."""
    refused(_with("amount_minor", '100, "amount_minor": 100'), "amount_minor")
    refused(_with("metadata", '{"a": [{"b": 1, "b": 2}]}'), "metadata.a[0].b")


def test_null_is_not_a_way_to_leave_out(refused: Refused) -> None:
    """M08: only absence means not given."""
    for name in ("workflow", "order_ref", *OPTIONAL):
        refused(_with(name, "null"), name)


def test_text_that_cannot_be_stored_or_seen_is_refused(refused: Refused) -> None:
    for name in ("workflow", "order_ref", "payment_ref", "currency", "reason", "session", "on_behalf_of"):
        for text in ("\\u0000", "a\\u0000b", "\\ud800", "a\\udfffb", "\\u202e", "\\u0007"):
            refused(_with(name, f'"{text}"'), name)


def test_metadata_is_json_that_can_be_stored(refused: Refused) -> None:
    for value, field in METADATA.items():
        refused(_with("metadata", value), field)


def test_nesting_has_an_end(refused: Refused) -> None:
    refused(_with("metadata", '{"a":' + "[" * 15 + "]" * 15 + "}"), "metadata.a" + "[0]" * 14)
    for levels in (900, 100_000):
        refused(_with("metadata", '{"a":' + "[" * levels + "]" * levels + "}"))


def test_a_body_is_one_json_object(refused: Refused) -> None:
    for raw in UNREADABLE:
        refused(raw, "body", status=400, code="malformed")
    for raw in (b"[1]", b'"a"', b"null", b"NaN", b"1"):
        refused(raw, "body")
    refused(b"", "body")
    refused(b"{}", "workflow", "order_ref")


def test_an_unknown_field_is_refused_by_its_name(refused: Refused) -> None:
    refused(_with("ammount", "1"), "ammount")
    refused(_with("\\u0000x", "1"), "\\x00x")


def test_everything_wrong_is_told_at_once(refused: Refused) -> None:
    wrong = refund("a b", currency="usd", reason="x" * 501, workflow="nothing")
    refused(json.dumps(wrong).encode(), "workflow", "order_ref", "currency", "reason")


def test_a_workflow_that_is_not_for_asking_is_refused(refused: Refused) -> None:
    for name in ("noop3", "refund ", "REFUND", ""):
        refused(_with("workflow", json.dumps(name)), "workflow")


def test_a_person_behind_it_is_one_of_this_tenant(shop: Caller) -> None:
    """M04: a person of another tenant is the same answer as none."""
    names = ("bea", "nobody", "ava", "", "RITA")
    answers = {shop.post("/tasks", refund("ORD-1", on_behalf_of=name), key="k").content for name in names}
    assert len(answers) == 1 and b"on_behalf_of" in answers.pop()


def test_no_two_references_look_alike(refused: Refused, shop: Caller) -> None:
    """C46: references and keys are ASCII, compared exactly, and refused before anything else looks at them."""
    for ref in LOOKALIKES:
        for name in ("order_ref", "payment_ref", "session"):
            refused(_with(name, json.dumps(ref)), name)
    for key in ("", "-K", "x" * 201, "a b", "k,k", "caf\u00e9", "k\u00a0"):
        refused(json.dumps(refund("ORD-1")).encode(), "Idempotency-Key", key=key)
    ids = {told(shop.post("/tasks", refund(ref), key=f"k-{ref}"))["id"] for ref in ("ORD-1", "ord-1")}
    assert len(ids) == 2


def test_the_idempotency_key_is_required(shop: Caller) -> None:
    assert_problem(shop.post("/tasks", refund("ORD-1")), 422, "invalid", "Idempotency-Key")


def test_another_content_type_is_refused(refused: Refused) -> None:
    for kind in (
        "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp", "",
        "application/json; charset=utf-16",
    ):
        refused(json.dumps(refund("ORD-1")).encode(), status=415, code="unsupported_media_type", content_type=kind)


def test_a_megabyte_is_too_large(refused: Refused) -> None:
    refused(_with("reason", '"' + "x" * 1_000_000 + '"'), status=413, code="too_large")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3), max_leaves=8,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(["workflow", "order_ref", *OPTIONAL, "other"]), json_values), st.booleans())
def test_no_body_whatsoever_is_a_fault_of_ours(world: World, shop: Caller, sent: dict[str, Any], whole: bool) -> None:
    body = {**(refund("ORD-1") if whole else {}), **sent}
    answer = shop.post("/tasks", body, key="k-fuzz")
    assert answer.status_code in {202, 400, 409, 422}, answer.content
    if answer.status_code != 202:
        assert told(answer)["code"]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60))
def test_no_bytes_whatsoever_are_a_fault_of_ours(world: World, shop: Caller, raw: bytes) -> None:
    assert shop.post("/tasks", raw=raw, key="k-fuzz").status_code in {400, 422}


def test_lists_keep_working_after_all_this(world: World, shop: Caller) -> None:
    for n, value in enumerate(AMOUNTS):
        shop.post("/tasks", raw=_with("amount_minor", value), key=f"k{n}")
    shop.post("/tasks", refund("ORD-1", metadata={"a": "\U0001f600 \u202e", "n": 2**64}, reason="<b>\u00e9"), key="ok")
    listed = told(shop.get("/tasks"))["tasks"]
    assert [task["request_key"] for task in listed] == ["ok"]
    assert listed[0]["metadata"] == {"a": "\U0001f600 \u202e", "n": 2**64} and listed[0]["reason"] == "<b>\u00e9"
