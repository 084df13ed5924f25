"""S10: what is not rightly signed, too old or unreadable gets a 4xx, is logged, and changes nothing."""

from __future__ import annotations

import json
import threading
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection
from django.test import Client

from runtime_app.models import Account, Case, Evidence, Notice, Task
from runtime_app.sealing import seal
from tests.notices.teller import SECRET, Teller, event, signature
from tests.world import World


def _refused(answer: Any, status: int = 400, code: str = "notice_refused") -> None:
    assert answer.status_code == status, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    told = answer.json()
    assert (told["status"], told["code"]) == (status, code) and told["detail"]
    assert not Notice.objects.exists() and not Evidence.objects.exists() and not Case.objects.exists()


def test_a_rightly_signed_notice_is_stored_and_then_answered(world: World, stripe: Teller) -> None:
    """F41: it may be about anything; what it says is kept, its body only as a digest."""
    about = event("re_1", operation="op-1", payment="pi_1", status="pending", kind="refund.created")
    answer = stripe.post(json.dumps(about).encode())
    assert answer.status_code == 200 and json.loads(answer.content) == {"received": True, "known": False}
    notice = Notice.objects.get()
    assert (notice.tenant_id, notice.account_id, notice.event_id) == (
        world.amber.pk, stripe.account.pk, about["id"])
    assert (notice.kind, notice.refund_ref, notice.operation_ref, notice.payment_ref, notice.says) == (
        "refund.created", "re_1", "op-1", "pi_1", "pending")
    assert len(notice.body_sha256) == 64 and notice.due_at is not None and notice.handled_at is None
    assert "set-cookie" not in answer.headers


def test_the_same_event_again_is_counted_and_answered_and_stored_once(stripe: Teller) -> None:
    """C08, F37: Stripe sends again until it is answered, and sometimes after that."""
    body = json.dumps(event("re_1")).encode()
    answers = [stripe.post(body) for _ in range(3)]
    assert [json.loads(a.content)["known"] for a in answers] == [False, True, True]
    assert Notice.objects.get().deliveries == 3


def test_the_same_event_many_times_at_once_is_one(world: World, stripe: Teller) -> None:
    """C08: five deliveries in parallel."""
    body, statuses, barrier = json.dumps(event("re_1")).encode(), list[int](), threading.Barrier(5)
    header = signature(body)

    def post() -> None:
        try:
            barrier.wait(20)
            statuses.append(Teller(world.amber).post(body, header).status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=post) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert statuses == [200] * 5
    assert Notice.objects.get().deliveries == 5


def test_what_is_not_signed_by_the_account_is_refused(
    world: World, stripe: Teller, subtests: pytest.Subtests, caplog: pytest.LogCaptureFixture
) -> None:
    """F40, S10: no signature, a bent one, an old one, one ahead of time, one of another secret, two times in one."""
    body = json.dumps(event("re_private")).encode()
    good = signature(body)
    headers = {
        "no header": "", "bent": good[:-1] + ("0" if good[-1] != "0" else "1"), "old": signature(body, age=3600),
        "ahead": signature(body, age=-3600), "another secret": signature(body, "whsec_nobody"),
        "the other tenant's secret": signature(body, "whsec_birch"), "two times": f"{good},{signature(body, age=9)}",
        "another body": signature(body + b" "), "nonsense": "t=,v1=", "long": good + "," + "v1=0" * 5000,
        "not ascii": "t=1,v1=\u00e9", "no version": good.replace("v1=", "v0="),
    }
    for name, header in headers.items():
        with subtests.test(name):
            caplog.clear()
            _refused(stripe.post(body, header))
            said = caplog.text
            assert "notice refused" in said and str(stripe.account.pk) in said
            assert "re_private" not in said and "whsec" not in said and SECRET not in said


def test_a_notice_is_good_for_five_minutes_of_the_databases_clock(world: World, stripe: Teller) -> None:
    """S10: replay. The window is judged by the product's clock, wherever that stands."""
    world.clock(days=4)
    body = json.dumps(event("re_1")).encode()
    header = signature(body)
    assert stripe.post(body, header).status_code == 200
    world.clock(minutes=6)
    assert stripe.post(body, header).status_code == 400
    assert Notice.objects.get().deliveries == 1


def test_another_account_is_another_door(world: World, stripe: Teller) -> None:
    """S10, C08: what Amber's provider signs does not pass at Birch's door, and unknown doors look all the same."""
    birch = Account.objects.get(tenant=world.birch)
    body = json.dumps(event("re_1")).encode()
    _refused(stripe.post(body, path=f"/hooks/stripe/{birch.pk}"))
    nowhere = [
        f"/hooks/stripe/{uuid4()}", f"/hooks/bank/{stripe.account.pk}", f"/hooks/nobody/{stripe.account.pk}",
        "/hooks/stripe/not-a-uuid", f"/hooks/stripe/{stripe.account.pk}/", "/hooks/", "/hooks/stripe",
        f"/hooks/stripe/{str(stripe.account.pk).upper()}", f"/hooks/stripe/{stripe.account.pk}%00",
    ]
    told = set()
    for path in nowhere:
        answer = stripe.post(body, path=path)
        _refused(answer, 404, "not_found")
        told.add(answer.content)
    assert len(told) == 1


def test_an_account_of_a_provider_that_is_gone_is_no_door(stripe: Teller) -> None:
    Account.objects.filter(pk=stripe.account.pk).update(provider="gone")
    _refused(stripe.post(b"{}", path=f"/hooks/gone/{stripe.account.pk}"), 404, "not_found")


def test_only_posts_are_taken(stripe: Teller) -> None:
    for method in ("get", "put", "patch", "delete", "options", "head"):
        answer = getattr(stripe.client, method)(stripe.path)
        assert answer.status_code == 405 and answer.headers["Allow"] == "POST"


def test_an_account_without_a_secret_takes_none(stripe: Teller, caplog: pytest.LogCaptureFixture) -> None:
    """Without a secret nothing can be checked, and an empty secret signs nothing."""
    Account.objects.filter(pk=stripe.account.pk).update(notice_secrets_sealed="")
    body = json.dumps(event("re_1")).encode()
    for secret in (SECRET, ""):
        _refused(stripe.post(body, signature(body, secret)))
    assert "The account has no secret for notices" in caplog.text
    Account.objects.filter(pk=stripe.account.pk).update(notice_secrets_sealed=seal("[]"))
    _refused(stripe.post(body, signature(body, "")))


def test_a_tenant_without_a_secret_cannot_go_live(stripe: Teller) -> None:
    """The database holds it, whoever writes."""
    with pytest.raises(IntegrityError, match="live_account_has_secrets"):
        Account.objects.filter(pk=stripe.account.pk).update(mode="live", notice_secrets_sealed="")


def test_a_bank_sends_no_notices(stripe: Teller) -> None:
    Account.objects.filter(pk=stripe.account.pk).update(provider="bank")
    _refused(stripe.post(b"{}", path=f"/hooks/bank/{stripe.account.pk}"))


def test_while_a_secret_is_replaced_both_are_good(stripe: Teller) -> None:
    Account.objects.filter(pk=stripe.account.pk).update(
        notice_secrets_sealed=seal(json.dumps(["whsec_new", SECRET])))
    for secret in ("whsec_new", SECRET):
        body = json.dumps(event()).encode()
        assert stripe.post(body, signature(body, secret)).status_code == 200
    Account.objects.filter(pk=stripe.account.pk).update(notice_secrets_sealed=seal('["whsec_new"]'))
    body = json.dumps(event()).encode()
    assert stripe.post(body, signature(body, SECRET)).status_code == 400
    assert Notice.objects.count() == 2


def test_secrets_that_cannot_be_opened_are_no_fault_of_the_sender(
    stripe: Teller, caplog: pytest.LogCaptureFixture
) -> None:
    """It is to send again: the key may be put back."""
    Account.objects.filter(pk=stripe.account.pk).update(notice_secrets_sealed="gAAAAAB-sealed-under-another-key")
    answer = stripe.post(json.dumps(event()).encode())
    _refused(answer, 503, "unavailable")
    assert answer.headers["Retry-After"] and "cannot be opened" in caplog.text


@pytest.mark.parametrize("body", [
    b"", b"null", b"[]", b'"x"', b"5", b"{", b"\xff\xfe", b"\x00", b"{}" * 2, b"[" * 100_000, b'{"a":' * 50_000,
    b'{"id": "evt_1", "id": "evt_2", "object": "event", "type": "refund.updated"}',
    b'{"id": "evt_\\u0000", "object": "event", "type": "refund.updated"}',
    b'{"id": "evt_\\ud800", "object": "event", "type": "refund.updated"}',
    b'{"id": "", "object": "event", "type": "refund.updated"}',
    b'{"id": ' + b"9" * 5000 + b', "object": "event", "type": "refund.updated"}',
    b'{"id": "evt_1", "object": "event", "type": NaN}',
    b'{"id": "evt_1", "object": "event", "type": ["refund.updated"]}',
    json.dumps({"id": "e" * 201, "object": "event", "type": "refund.updated"}).encode(),
], ids=lambda b: ascii(b[:40]))
def test_a_signed_body_without_one_meaning_is_refused(stripe: Teller, body: bytes) -> None:
    """S10: hostile also when it is signed: duplicate names, bombs, zero bytes, huge numbers; never a 500."""
    _refused(stripe.post(body))


@pytest.mark.parametrize("part", [
    {"created": 10**400}, {"created": -1}, {"created": True}, {"created": "yesterday"}, {"type": "refund." + "x" * 150},
    {"data": {"object": {"id": "x" * 300, "metadata": {"operation_id": "y" * 450}, "payment_intent": "\ud800"}}},
    {"data": {"object": {"id": "re_\0", "payment_intent": "pi_\0", "status": "\0"}}}, {"livemode": "yes"},
    {"data": {"object": {"id": {"a": 1}, "status": "s" * 9000, "metadata": {"operation_id": ["x"]}}}},
    {"data": [[]]}, {"data": {"object": {"object": "charge", "refunds": {"data": [[], {}]}}}},
], ids=lambda p: ascii(p)[:50])
def test_a_signed_event_with_nonsense_in_it_is_kept_as_far_as_it_can_be(
    world: World, stripe: Teller, part: dict[str, Any]
) -> None:
    body = json.dumps(event() | part).encode()
    assert stripe.post(body).status_code == 200
    notice = Notice.objects.get()
    assert all(len(text) <= 200 and "\0" not in text for text in (
        notice.refund_ref, notice.operation_ref, notice.payment_ref, notice.says, notice.kind))


def test_a_body_that_is_too_large_is_not_read_to_its_end(stripe: Teller) -> None:
    """S10: 1 MB and 5 MB."""
    for size in (256 * 1024 + 1, 1_000_000, 5_000_000):
        _refused(stripe.post(b"x" * size, "t=1,v1=00"), 413, "too_large")
    about = event() | {"padding": ""}
    about["padding"] = "x" * (256 * 1024 - len(json.dumps(about)))
    assert stripe.post(json.dumps(about).encode()).status_code == 200


def test_a_browsers_session_is_neither_needed_nor_made(world: World, stripe: Teller) -> None:
    """A signed-in person's browser cannot tell notices either: there is no signature."""
    browser = Client(raise_request_exception=False)
    browser.force_login(world.tom, backend="django.contrib.auth.backends.ModelBackend")
    _refused(browser.post(stripe.path, b"{}", content_type="application/json"))


def test_a_notice_makes_no_task(world: World, stripe: Teller) -> None:
    """C08: every delivery is answered, and none creates a task."""
    stripe.tell(event("re_1", payment="pi_nobody"))
    assert not Task.objects.exists()
