"""Writing a refund as a payment file: pain.001.001.09, one payment, its bytes never made anew."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from lxml import etree

from runtime_app.adapters.payments.bank_settings import Creditor, Debtor
from runtime_app.money import Money, decimal_text

VERSION = "pain.001.001.09"
REMITTANCE_MOST = 140
_SPACE = "urn:iso:std:iso:20022:tech:xsd:" + VERSION
# What XML 1.0 cannot hold, and half of a pair of surrogates, which no encoding can.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def our_id(operation_id: UUID) -> str:
    """The operation in the 35 characters that ISO 20022 has for an id, as message and as payment.

    It is the same however often it is sent: a bank refuses a message that it had before, and would pay another.
    """
    return operation_id.hex


def operation_ref(end_to_end_id: str) -> str | None:
    """The operation's id as text, when an EndToEndId can be one of ours."""
    return str(UUID(end_to_end_id)) if re.fullmatch("[0-9a-fA-F]{32}", end_to_end_id) else None


def plain(text: str, most: int) -> str:
    """On one line, without what XML cannot hold, and no longer than this."""
    return " ".join(_UNWRITABLE.sub("?", text).split())[:most].rstrip()


def write_pain001(
    debtor: Debtor, creditor: Creditor, *, operation_id: UUID, amount: Money, remittance: str, at: datetime,
    zone: ZoneInfo,
) -> bytes:
    """The file's bytes. `at` is when it was made; it asks to be carried out on that day in the bank's `zone`."""
    ours, value = our_id(operation_id), decimal_text(amount.minor, amount.currency)
    body = etree.Element(f"{{{_SPACE}}}Document", nsmap={None: _SPACE})
    file = _add(body, "CstmrCdtTrfInitn")
    head = _add(file, "GrpHdr")
    made = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for name, text in (("MsgId", ours), ("CreDtTm", made), ("NbOfTxs", "1"), ("CtrlSum", value)):
        _add(head, name, text)
    _add(head, "InitgPty/Nm", debtor.name)
    batch = _add(file, "PmtInf")
    for name, text in (("PmtInfId", ours), ("PmtMtd", "TRF"), ("NbOfTxs", "1"), ("CtrlSum", value)):
        _add(batch, name, text)
    _add(batch, "ReqdExctnDt/Dt", at.astimezone(zone).date().isoformat())
    _add(batch, "Dbtr/Nm", debtor.name)
    _add(batch, "DbtrAcct/Id/IBAN", debtor.iban)
    _add(batch, "DbtrAgt/FinInstnId/BICFI", debtor.bic)
    _add_payment(batch, ours, creditor, amount.currency, value, remittance)
    written: bytes = etree.tostring(body, xml_declaration=True, encoding="UTF-8")
    return written


def _add_payment(
    batch: etree._Element, ours: str, creditor: Creditor, currency: str, value: str, remittance: str
) -> None:
    payment = _add(batch, "CdtTrfTxInf")
    _add(payment, "PmtId/EndToEndId", ours)
    _add(payment, "Amt/InstdAmt", value).set("Ccy", currency)
    # A payment without its receiver's name is refused at many banks; this word says that it was not given.
    _add(payment, "Cdtr/Nm", creditor.name or "NOTPROVIDED")
    _add(payment, "CdtrAcct/Id/IBAN", creditor.iban)
    _add(payment, "RmtInf/Ustrd", plain(remittance, REMITTANCE_MOST))


def _add(parent: etree._Element, path: str, text: str | None = None) -> etree._Element:
    for name in path.split("/"):
        parent = etree.SubElement(parent, f"{{{_SPACE}}}{name}")
    parent.text = text
    return parent
