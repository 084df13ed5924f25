"""Minor-unit exponents of ISO 4217, frozen.

Source: the `iso4217` package, table of 2026-01-01, without funds and test codes that have none. An operation stores the
exponent it was made with, so that a later table never changes what an old amount was.
"""

from __future__ import annotations

from datetime import date

TABLE = date(2026, 1, 1)  # of which day this table is

_BY_EXPONENT = {
    0: (
        "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF "
    ),
    2: (
        "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE "
        "CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD "
        "HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK "
        "MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD "
        "RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH "
        "USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG "
    ),
    3: (
        "BHD IQD JOD KWD LYD OMR TND "
    ),
    4: (
        "CLF UYW "
    ),
}
# No longer in ISO's table, but still on old orders: exponent, and since when it is withdrawn.
WITHDRAWN: dict[str, tuple[int, date]] = {
    "HRK": (2, date(2023, 1, 1)),
    "SLL": (2, date(2024, 4, 1)),
    "ZWL": (2, date(2024, 9, 1)),
    "BGN": (2, date(2026, 1, 1)),
}

EXPONENTS: dict[str, int] = {
    code: exponent for exponent, codes in _BY_EXPONENT.items() for code in codes.split()
} | {code: exponent for code, (exponent, _) in WITHDRAWN.items()}
