"""The page's forms: how a fault's parameters are asked for, and how what was typed becomes what is armed."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

from runtime_app.sandbox import passing
from runtime_app.sandbox.app import Sandbox
from runtime_app.sandbox.asking import whole
from runtime_app.sandbox.control_faults import Port, arm, disarm
from runtime_app.sandbox.deliveries import Delivery
from runtime_app.sandbox.fault_kinds import Fault, Param
from runtime_app.sandbox.fault_table import FAULTS
from runtime_app.sandbox.faults import Unusable
from runtime_app.sandbox.http11 import Reply, Request
from runtime_app.sandbox.wire import read_form

ACTION = "/_sandbox/page"
_SCOPE = ("payment_ref", "operation_id", "tenant")
_BACK = {"location": ACTION + "#armed"}
_QUOTED = re.compile("`([^`]+)`")
_NUMBERS = ("seconds", "shift", "count", "minor")


def press(sandbox: Sandbox, port: Port, request: Request) -> Reply | Delivery:
    """Do what a form asks, and go back to the page. Raises Unusable with the sentence that the page shows."""
    try:
        form = dict(read_form(request.body.decode("utf-8")))
    except ValueError:
        raise Unusable("The form is not UTF-8 form data.") from None
    match form.pop("press", ""):
        case "arm":
            arm(sandbox, port, _asked(form))
        case "clear":
            disarm(sandbox, port, whole(form, "id", 0))
        case "clear all":
            disarm(sandbox, port)
        case "pass":
            return passing.pressed(sandbox, form.get("span", ""), _BACK)
        case other:
            raise Unusable(f"The page has no button {other!r}.")
    return Reply(303, b"", dict(_BACK), content_type="text/plain")


def _asked(form: dict[str, str]) -> dict[str, Any]:
    """As the control plane takes it; an empty field is left to its default."""
    fault = FAULTS.get(form.get("fault", ""))
    if fault is None:
        raise Unusable("There is no such fault.")
    asked: dict[str, Any] = {"fault": fault.code, "match": {}}
    for name, text in form.items():
        param = fault.params.get(name.removeprefix("param."))
        if not text.strip() or name == "fault":
            continue
        if name.startswith("param.") and param is not None:
            asked[name.removeprefix("param.")] = _value(param, text.strip())
        elif name.startswith("match."):
            asked["match"][name.removeprefix("match.")] = text.strip()
        elif name == "times":
            asked["times"] = _number(text.strip())
        else:
            raise Unusable(f"{fault.code} has no field {name!r}.")
    return asked


def _value(param: Param, text: str) -> Any:
    if param.choices:
        return next((choice for choice in param.choices if str(choice) == text), text)
    if param.kind == "flag":
        return {"true": True, "false": False}.get(text, text)
    return _number(text) if param.kind in _NUMBERS else text


def _number(text: str) -> Any:
    """What the table then judges: a number, null, or the text when it is neither."""
    try:
        return json.loads(text) if len(text) <= 20 else text
    except ValueError:
        return text


def armed_list(sandbox: Sandbox) -> str:
    armed = sandbox.faults.armed()
    if not armed:
        return '<p class="quiet">Nothing. The provider does what it should.</p>' + _clear_all("Open the port again")
    items = ""
    for one in armed:
        told = one.told()
        about = {n: v for n, v in told.items() if n not in ("id", "fault", "on", "times_left") and v not in (None, {})}
        left = "until cleared" if one.left is None else f"{one.left} more"
        items += (
            f"<li><strong>{one.fault.code}</strong> {escape(', '.join(one.on))} ({left}) <code>"
            f"{escape(json.dumps(about, ensure_ascii=False))}</code> <form method=post action={ACTION}>"
            f'<input type=hidden name=id value="{one.id}"><button name=press value=clear>Clear'
            f'<span class="hidden"> {one.fault.code}</span></button></form></li>'
        )
    return f"<ul>{items}</ul>" + _clear_all("Clear all")


def _clear_all(label: str) -> str:
    return f'<form method=post action={ACTION}><button name=press value="clear all">{label}</button></form>'


def fault_form(fault: Fault) -> str:
    fields = "".join(_param_field(fault.code, name, param) for name, param in fault.params.items())
    if fault.layer != "port":
        fields += "".join(
            _field(f"{fault.code}-{name}", f"match.{name}", f"Only for this {name}", "")
            for name in _SCOPE if name in fault.matches
        )
    if fault.layer not in ("port", "now"):
        usual = "until cleared" if fault.times is None else str(fault.times)
        fields += _field(f"{fault.code}-times", "times", "How many times", usual, "numeric")
    return (
        f"<details><summary><strong>{fault.code}</strong> {_prose(fault.help)}</summary>"
        f"<form method=post action={ACTION}><input type=hidden name=fault value={fault.code}>{fields}"
        f'<button name=press value=arm>{"Do it now" if fault.layer in ("port", "now") else "Arm"}'
        f' <span class="hidden">{fault.code}</span></button></form></details>'
    )


def _prose(text: str) -> str:
    return _QUOTED.sub(r"<code>\1</code>", escape(text))


def _param_field(code: str, name: str, param: Param) -> str:
    ident, label = f"{code}-{name}", f"`{name}`: {param.help}"
    choices = ("false", "true") if param.kind == "flag" else tuple(str(choice) for choice in param.choices)
    if choices:
        default = str(param.default).lower() if param.kind == "flag" else str(param.default)
        options = "".join(f"<option{' selected' if c == default else ''}>{escape(c)}</option>" for c in choices)
        field = f'<select id="{ident}" name="param.{name}">{options}</select>'
        return f'<p><label for="{ident}">{_prose(label)}</label>{field}</p>'
    default = "" if param.default is None else str(param.default)
    return _field(ident, f"param.{name}", label, default, "numeric" if param.kind in _NUMBERS else "text")


def _field(ident: str, name: str, label: str, hint: str, mode: str = "text") -> str:
    return (f'<p><label for="{ident}">{_prose(label)}</label><input id="{ident}" name="{name}" inputmode={mode}'
            f' placeholder="{escape(hint)}" autocomplete=off></p>')
