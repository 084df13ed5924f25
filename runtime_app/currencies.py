"""Minor-unit exponents of ISO 4217, frozen.

Source: the `iso4217` package, table of 2026-01-01, without funds and test codes that have none.
"""

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
# Withdrawn, but still on old orders: HRK 2023-01-01, BGN 2026-01-01, ZWL 2024-09-01, SLL 2024-04-01.
_WITHDRAWN = {"HRK": 2, "BGN": 2, "ZWL": 2, "SLL": 2}

EXPONENTS: dict[str, int] = {
    code: exponent for exponent, codes in _BY_EXPONENT.items() for code in codes.split()
} | _WITHDRAWN
