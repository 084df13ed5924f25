"""Letting time pass in a trial: the sandbox's clock at once, then the product's, and by whole days the bank's."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from html import escape

from runtime_app.sandbox.app import Sandbox
from runtime_app.sandbox.clock import PRODUCT_CLOCK, move_product_clock
from runtime_app.sandbox.deliveries import Delivery
from runtime_app.sandbox.faults import Unusable
from runtime_app.sandbox.http11 import Reply
from runtime_app.sandbox.orders import problem
from runtime_app.sandbox.wire import json_reply

BANK = "BANK_URL"
DAY = 86_400
SPANS = {"1 hour": 3_600, "6 hours": 6 * 3_600, "1 day": DAY, "3 days": 3 * DAY, "10 days": 10 * DAY}
_ALONE = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a bank of this machine, whatever the proxy


def told(sandbox: Sandbox, seconds: float) -> Delivery:
    """For a program: where the clocks stand, and whether the product's moved."""

    def answer(moved: bool, sentence: str) -> Reply:
        return json_reply({"now": now, "advanced_s": advanced, "product_clock_moved": moved, "note": sentence})

    sandbox.advance(seconds)
    advanced, now = sandbox.clock.advanced, sandbox.clock.iso()
    return _elsewhere(seconds, answer)


def pressed(sandbox: Sandbox, span: str, back: dict[str, str]) -> Delivery:
    """For the page: back to it, or the sentence about a clock that did not move."""
    if span not in SPANS:
        raise Unusable(f"Let one of these pass: {', '.join(SPANS)}.")
    sandbox.advance(SPANS[span])

    def answer(moved: bool, sentence: str) -> Reply:
        alone = not os.environ.get(PRODUCT_CLOCK)
        return Reply(303, b"", dict(back), content_type="text/plain") if moved or alone else problem(502, sentence)

    return _elsewhere(SPANS[span], answer)


def _elsewhere(seconds: float, answer: Callable[[bool, str], Reply]) -> Delivery:
    def move() -> Reply:
        moved, sentence = move_product_clock(seconds)
        return answer(moved, sentence + _move_bank(int(seconds // DAY)))

    return Delivery(elsewhere=move)


def _move_bank(days: int) -> str:
    """What there is to say of the bank's clock; nothing where there is no bank, or no whole day passed. Blocks."""
    url = os.environ.get(BANK, "")
    if not url or not days:
        return ""
    try:
        with _ALONE.open(urllib.request.Request(f"{url}/_mock/advance?days={days}", method="POST"), timeout=5) as page:
            json.load(page)
    except (urllib.error.URLError, OSError, ValueError) as error:
        return f" The bank's clock could not be moved ({type(error).__name__})."
    return f" The bank's clock moved by {days} d."


def form(action: str) -> str:
    options = "".join(f"<option>{escape(span)}</option>" for span in SPANS)
    return (
        f'<form method=post action={action} class="line"><label for="span">Let time pass, here, in Countersign and, by'
        f' whole days, at the bank</label> <select id="span" name="span">{options}</select>'
        ' <button name=press value="pass">Let it pass</button></form>'
    )
