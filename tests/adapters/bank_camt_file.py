"""A camt.053 made by hand, as banks differ in them: change a part and see what is read or refused."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

OPERATION = UUID("0a1b2c3d-4e5f-4a6b-8c7d-0123456789ab")
DAY = "2099-01-06"
ACCOUNT = "<Acct><Id><IBAN>NL41MOCK0000000001</IBAN></Id><Ccy>EUR</Ccy></Acct>"
PERIOD = f"<FrToDt><FrDtTm>{DAY}T00:00:00Z</FrDtTm><ToDtTm>{DAY}T23:59:59Z</ToDtTm></FrToDt>"
SENT = "<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>ICDT</Cd><SubFmlyCd>ESCT</SubFmlyCd></Fmly></Domn></BkTxCd>"
RETURN = "<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf>"


def balance(code: str, amount: str, *, side: str = "CRDT", currency: str = "EUR", day: str = DAY) -> str:
    return (f'<Bal><Tp><CdOrPrtry><Cd>{code}</Cd></CdOrPrtry></Tp><Amt Ccy="{currency}">{amount}</Amt>'
            f"<CdtDbtInd>{side}</CdtDbtInd><Dt><Dt>{day}</Dt></Dt></Bal>")


def payment(end_to_end_id: str = OPERATION.hex, *, more: str = "", before: str = "") -> str:
    refs = f"<Refs><EndToEndId>{end_to_end_id}</EndToEndId></Refs>"
    return f"<TxDtls>{before}{refs}{more}</TxDtls>"


def entry(
    amount: str = "25.00", *, side: str = "DBIT", currency: str = "EUR", ref: str = "<AcctSvcrRef>B-1</AcctSvcrRef>",
    status: str = "<Sts><Cd>BOOK</Cd></Sts>", booked: str = f"<BookgDt><Dt>{DAY}</Dt></BookgDt>",
    valued: str = f"<ValDt><Dt>{DAY}</Dt></ValDt>", code: str = SENT, payments: str | None = None,
) -> str:
    details = "" if payments == "" else f"<NtryDtls>{payment() if payments is None else payments}</NtryDtls>"
    return (f'<Ntry><Amt Ccy="{currency}">{amount}</Amt><CdtDbtInd>{side}</CdtDbtInd>{status}{booked}{valued}{ref}'
            f"{code}{details}</Ntry>")


def statement(
    entries: Iterable[str] = (), *, account: str = ACCOUNT, period: str = PERIOD, number: str = "17",
    opening: str = balance("OPBD", "100.00"), closing: str = balance("CLBD", "75.00"), more: str = "", id: str = "S-17",
) -> str:
    return (f"<Stmt><Id>{id}</Id><ElctrncSeqNb>{number}</ElctrncSeqNb>{period}{account}{opening}{closing}{more}"
            f"{''.join(entries)}</Stmt>")


def camt053(*statements: str, version: str = "camt.053.001.08", head: str = "", message: str = "BkToCstmrStmt",
            group: str = "<GrpHdr><MsgId>M-1</MsgId></GrpHdr>") -> bytes:
    return (f'<?xml version="1.0" encoding="UTF-8"?>{head}<Document xmlns="urn:iso:std:iso:20022:tech:xsd:{version}">'
            f"<{message}>{group}{''.join(statements)}</{message}></Document>").encode()
