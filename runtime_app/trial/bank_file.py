"""The trial's bank tells of yesterday: a statement file as an operator would have it, with lines that are not ours."""

from __future__ import annotations

from datetime import date
from xml.sax.saxutils import escape

CLOSING = 12_500_000  # cents: what the trial's bank begins with, so that its own first statement follows this one
# In cents, what came in being positive: a customer pays, the bank takes its fee, somebody refunds at the bank itself.
LINES = (
    (25_000, "STORY-1", "RCDT", "ESCT", "Invoice 2207, Hanna Vogel"),
    (-450, "STORY-2", "MDOP", "CHRG", "Fee of the month"),
    (-3_900, "STORY-3", "ICDT", "ESCT", "Refund by hand, Jonas Meyer"),
)


def statement_of(day: date, iban: str, currency: str) -> bytes:
    """A whole camt.053 of that day; the same bytes for the same day."""
    opening = CLOSING - sum(minor for minor, *_rest in LINES)
    entries = "".join(_entry(day, currency, *line) for line in LINES)
    text = f"""<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt>
<GrpHdr><MsgId>STORY-{day:%Y%m%d}</MsgId><CreDtTm>{day}T23:59:59+00:00</CreDtTm></GrpHdr>
<Stmt><Id>STORY-{day:%Y%m%d}</Id><CreDtTm>{day}T23:59:59+00:00</CreDtTm>
<FrToDt><FrDtTm>{day}T00:00:00+00:00</FrDtTm><ToDtTm>{day}T23:59:59+00:00</ToDtTm></FrToDt>
<Acct><Id><IBAN>{escape(iban)}</IBAN></Id><Ccy>{escape(currency)}</Ccy></Acct>
{_balance("OPBD", opening, day, currency)}{_balance("CLBD", CLOSING, day, currency)}
{entries}</Stmt></BkToCstmrStmt></Document>
"""
    return text.encode()


def _amount(minor: int, currency: str) -> str:
    sign = "CRDT" if minor >= 0 else "DBIT"
    shown = f"{abs(minor) // 100}.{abs(minor) % 100:02}"
    return f'<Amt Ccy="{escape(currency)}">{shown}</Amt><CdtDbtInd>{sign}</CdtDbtInd>'


def _balance(code: str, minor: int, day: date, currency: str) -> str:
    return (f"<Bal><Tp><CdOrPrtry><Cd>{code}</Cd></CdOrPrtry></Tp>{_amount(minor, currency)}"
            f"<Dt><Dt>{day}</Dt></Dt></Bal>")


def _entry(day: date, currency: str, minor: int, ref: str, family: str, kind: str, text: str) -> str:
    code = f"<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>{family}</Cd><SubFmlyCd>{kind}</SubFmlyCd></Fmly></Domn></BkTxCd>"
    return (
        f"<Ntry>{_amount(minor, currency)}<Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>{day}</Dt></BookgDt>"
        f"<ValDt><Dt>{day}</Dt></ValDt><AcctSvcrRef>{ref}</AcctSvcrRef>{code}<NtryDtls><TxDtls><Refs><EndToEndId>{ref}"
        f"</EndToEndId></Refs>{_amount(minor, currency)}<RmtInf><Ustrd>{escape(text)}</Ustrd></RmtInf></TxDtls>"
        f"</NtryDtls></Ntry>\n"
    )
