"""The one rule for text at every door: written here, and checked before anything else looks at it."""

from __future__ import annotations

import re
import unicodedata

from runtime_app.errors import FieldErrors

# References and keys are ASCII only, so that no two of them look alike and differ.
_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/#@+=~-]{0,199}", re.ASCII)
_REF_SENTENCE = "Use 1 to 200 ASCII letters, digits and . _ : / # @ + = ~ - , starting with a letter or digit."
_NONCE = re.compile(r"[A-Za-z0-9_-]{16,64}", re.ASCII)


def check_ref(value: object, field: str) -> str:
    """A reference of an outside system, as `_REF` allows it."""
    if not isinstance(value, str) or not _REF.fullmatch(value):
        raise FieldErrors({field: _REF_SENTENCE})
    return value


def check_key(value: object, field: str = "Idempotency-Key") -> str:
    """A request key; the same rule as for references."""
    return check_ref(value, field)


def check_nonce(value: object, field: str = "nonce") -> str:
    if not isinstance(value, str) or not _NONCE.fullmatch(value):
        raise FieldErrors({field: "This form is not complete; open the page again."})
    return value


def check_text(value: object, field: str, *, most: int) -> str:
    """Text that people read: composed (NFC), at most `most` characters, nothing invisible but line breaks."""
    if not isinstance(value, str):
        raise FieldErrors({field: "Use text."})
    text = unicodedata.normalize("NFC", value.replace("\r\n", "\n")) if value.isprintable() or _encodes(value) else ""
    if value and not text:
        raise FieldErrors({field: "This text has characters that cannot be stored."})
    if len(text) > most:
        raise FieldErrors({field: f"Use at most {most} characters."})
    if any(unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn"} and c not in "\n\t\u200d" for c in text):
        raise FieldErrors({field: "Leave out control characters and invisible characters."})
    return text


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
