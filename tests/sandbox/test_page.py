"""The page of the sandbox: faults are pressed by hand, and only by somebody who looks at it."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
import requests

from runtime_app.sandbox.fault_table import FAULTS
from tests.sandbox.conftest import Tenant, Wire

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


class Forms(HTMLParser):
    """The forms of a page: for each its action, and the names and values of its fields."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: list[dict[str, Any]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if tag == "form":
            self.forms.append({"action": told["action"], "method": told["method"], "fields": {}})
        elif tag in ("input", "select", "button") and self.forms:
            self.forms[-1]["fields"][told["name"]] = told.get("value") or ""

    def of(self, code: str) -> dict[str, Any]:
        return next(form for form in self.forms if form["fields"].get("fault") == code)


def page_of(wire: Wire) -> requests.Response:
    return requests.get(f"{wire.sandbox.url}/_sandbox/", headers=HTML, timeout=20)


def press(wire: Wire, fields: dict[str, str], **headers: str) -> requests.Response:
    return requests.post(f"{wire.sandbox.url}/_sandbox/page", data=fields, headers=headers, timeout=20,
                         allow_redirects=False)


def armed(wire: Wire) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = wire.sandbox.control("GET", "").json()["armed"]
    return told


def test_a_browser_gets_a_page_and_a_program_gets_json(wire: Wire) -> None:
    page = page_of(wire)
    assert page.headers["content-type"] == "text/html; charset=utf-8" and page.status_code == 200
    assert requests.get(f"{wire.sandbox.url}/_sandbox/page", timeout=20).text[:15] == "<!doctype html>"
    for path in ("/_sandbox", "/_sandbox/"):
        assert requests.get(wire.sandbox.url + path, timeout=20).json()["faults"]
    style = requests.get(f"{wire.sandbox.url}/_sandbox/page.css", timeout=20)
    assert style.headers["content-type"] == "text/css; charset=utf-8" and "prefers-color-scheme" in style.text


def test_the_page_has_a_form_for_every_fault_and_every_parameter(wire: Wire) -> None:
    forms = Forms(page_of(wire).text)
    for code, fault in FAULTS.items():
        fields = forms.of(code)["fields"]
        assert {f"param.{name}" for name in fault.params} <= set(fields)
        assert {form["action"] for form in forms.forms} == {"/_sandbox/page"}


def test_the_page_needs_no_script_and_forbids_any(wire: Wire) -> None:
    page = page_of(wire)
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src" not in policy and "unsafe" not in policy
    assert "<script" not in page.text and "style=" not in page.text and " on" + "click" not in page.text
    assert page.headers["x-frame-options"] == "DENY" and page.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("code", [c for c, f in FAULTS.items() if f.layer not in ("port", "now")])
def test_every_form_arms_its_fault_as_it_stands(wire: Wire, code: str) -> None:
    fields = Forms(page_of(wire).text).of(code)["fields"]
    answer = press(wire, fields)
    assert (answer.status_code, answer.headers["location"]) == (303, "/_sandbox/page#armed")
    by_page = armed(wire)
    wire.sandbox.clear_faults()
    wire.sandbox.fault(code)
    assert [{**a, "id": 0} for a in by_page] == [{**a, "id": 0} for a in armed(wire)], "as the control plane would"


def test_a_pressed_fault_happens_with_what_was_typed(wire: Wire) -> None:
    payment = wire.payment()
    scope = {"match.payment_ref": payment, "times": "2"}
    press(wire, {"press": "arm", "fault": "F12", "param.retry_after": " 7 ", **scope})
    [told] = armed(wire)
    assert (told["fault"], told["times_left"], told["match"]) == ("F12", 2, {"payment_ref": payment})
    assert wire.refund(payment).headers["retry-after"] == "7"
    press(wire, {"press": "arm", "fault": "F20", "param.holds_key": "true", "param.seconds": "60"})
    assert armed(wire)[-1]["holds_key"] is True
    press(wire, {"press": "arm", "fault": "F8", "param.status": "503", "param.when": "before", "times": "null"})
    assert (armed(wire)[-1]["status"], armed(wire)[-1]["times_left"]) == (503, None)


def statuses(wire: Wire, payment: str) -> list[str]:
    told = wire.sandbox.control("GET", f"/refunds?all=1&payment_ref={payment}").json()["refunds"]
    return [str(refund["status"]) for refund in told]


def test_time_passes_when_it_is_pressed(wire: Wire) -> None:
    """F21: what is due by the sandbox's clock happens without a wait, and by nothing but the spans of the page."""
    payment = wire.payment()
    wire.sandbox.fault("F21", seconds=86_400)
    wire.refund(payment)
    [form] = [one for one in Forms(page_of(wire).text).forms if "span" in one["fields"]]
    assert statuses(wire, payment) == ["pending"]
    answer = press(wire, {**form["fields"], "span": "1 day"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/_sandbox/page#armed")
    assert statuses(wire, payment) == ["succeeded"]


def test_faults_are_cleared_one_by_one_or_all(wire: Wire) -> None:
    for code in ("F2", "F4", "F6"):
        wire.sandbox.fault(code)
    buttons = [form["fields"] for form in Forms(page_of(wire).text).forms if "id" in form["fields"]]
    press(wire, buttons[1])
    assert [a["fault"] for a in armed(wire)] == ["F2", "F6"]
    press(wire, {"press": "clear all"})
    assert armed(wire) == []


@pytest.mark.parametrize("fields", [
    {"press": "arm"}, {"press": "arm", "fault": "F99"}, {"press": "arm", "fault": "F3", "param.seconds": "soon"},
    {"press": "arm", "fault": "F3", "param.colour": "red"}, {"press": "arm", "fault": "F3", "colour": "red"},
    {"press": "arm", "fault": "F3", "times": "0"}, {"press": "arm", "fault": "F8", "param.status": "200"},
    {"press": "arm", "fault": "F3", "param.seconds": "9" * 50}, {"press": "arm", "fault": "F3", "match.x": "y"},
    {"press": "arm", "fault": "F3", "param.seconds": "NaN"}, {"press": "arm", "fault": "F46", "match.payment_ref": "x"},
    {"press": "arm", "fault": "F33", "match.payment_ref": "pi_none"}, {"press": "arm", "fault": "F33"},
    {"press": "clear", "id": "x"}, {"press": "explode"}, {}, {"press": "<script>"},
    {"press": "pass"}, {"press": "pass", "span": "1 year"},
], ids=str)
def test_a_form_that_cannot_be_is_answered_on_the_page(wire: Wire, fields: dict[str, str]) -> None:
    answer = press(wire, fields)
    assert answer.status_code == 422 and 'role="alert"' in answer.text and "<script" not in answer.text
    assert armed(wire) == []


def test_a_body_that_is_no_form_is_answered_on_the_page(wire: Wire) -> None:
    for body in (b"\xff=%ff", b"&".join(b"a=1" for _ in range(500))):
        assert requests.post(f"{wire.sandbox.url}/_sandbox/page", data=body, timeout=20).status_code == 422


@pytest.mark.parametrize("headers", [
    {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://127.0.0.1:1"},
], ids=str)
def test_a_page_of_another_site_cannot_press(wire: Wire, headers: dict[str, str]) -> None:
    """There is no sign-in, so a form on a foreign page must not reach the control plane."""
    assert press(wire, {"press": "arm", "fault": "F4"}, **headers).status_code == 403
    for method, path in (("POST", "/faults"), ("DELETE", "/faults"), ("POST", "/clock"), ("POST", "/accounts")):
        answer = requests.request(method, f"{wire.sandbox.control_url}/_sandbox{path}", json={"fault": "F4"},
                                  headers=headers, timeout=20)
        assert answer.status_code == 403 and answer.json()["error"].endswith(".")
    assert armed(wire) == []
    own = {"Origin": wire.sandbox.url, "Sec-Fetch-Site": "same-origin"}
    assert press(wire, {"press": "arm", "fault": "F4"}, **own).status_code == 303


def test_everything_on_the_page_is_escaped(wire: Wire) -> None:
    evil = "<script>alert('x')</script>\""
    wire.sandbox.fault("F7", body=evil)
    wire.refund("pi_none", operation=evil)
    wire.send("GET", "/v1/%3Cscript%3E<script>")
    page = page_of(wire).text
    assert "<script" not in page and "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;" in page


def test_the_page_shows_the_last_requests_refunds_and_notices(wire: Wire, tenant: Tenant) -> None:
    payment = tenant.payment()
    refund = tenant.wire.refund(payment, 123, operation="op-shown").json()["id"]
    tenant.inbox.wait(2)
    page = page_of(wire).text
    for shown in (refund, "op-shown", "123 USD", "POST /v1/refunds", "refund.created", tenant.slug):
        assert f">{shown}</td>" in page
    assert tenant.secret not in page and str(tenant.wire.key) not in page
    requests_table = page.split('id=requests')[1].split("</table>")[0]
    assert requests_table.count("<tr>") <= 31
