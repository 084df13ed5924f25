"""Reading XML that somebody sent: one meaning or none, nothing fetched, nothing expanded, nothing guessed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from lxml import etree

from runtime_app.currencies import EXPONENTS
from runtime_app.errors import FieldErrors
from runtime_app.money import Money

BYTES_MOST = 20 * 1024 * 1024
TEXT_MOST = 500
_SPACE = "urn:iso:std:iso:20022:tech:xsd:"
_AMOUNT = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,10}))?", re.ASCII)


class Refused(ValueError):
    """A sentence that says to a person why a document is not taken."""


@dataclass(frozen=True, slots=True)
class Node:
    """An element, and where it stands in words that a person finds it by."""

    element: etree._Element
    where: str

    def all(self, name: str, where: str = "") -> Iterator[Node]:
        for number, found in enumerate(self.element.iterchildren(self._space + name), 1):
            yield Node(found, f"{where} {number} of {self.where}" if where else self.where)

    def one(self, path: str) -> Node | None:
        """What is at `path`, or None. Twice where the standard has it once has no one meaning."""
        element = self.element
        for name in path.split("/"):
            found = list(element.iterchildren(self._space + name))
            if len(found) > 1:
                raise Refused(f"{self.where}: {name} occurs {len(found)} times where it may occur once.")
            if not found:
                return None
            element = found[0]
        return Node(element, self.where)

    @property
    def _space(self) -> str:
        return str(self.element.tag).rpartition("}")[0] + "}"

    def text(self, *paths: str) -> str | None:
        """The text at the first of these paths that has one."""
        for path in paths:
            node = self.one(path)
            found = (node.element.text or "").strip() if node is not None else ""
            if found and node is not None and len(node.element):  # its text would be cut off there
                raise Refused(f"{self.where}: {path} holds more than text.")
            if len(found) > TEXT_MOST:
                raise Refused(f"{self.where}: {path} is longer than {TEXT_MOST} characters.")
            if found:
                return found
        return None

    def need(self, *paths: str) -> str:
        found = self.text(*paths)
        if found is None:
            raise Refused(f"{self.where}: {paths[0]} is missing.")
        return found

    def money(self, path: str) -> Money:
        """The amount at `path` in minor units, exactly as written and unsigned."""
        node, text = self.one(path), self.need(path)
        currency = (node.element.get("Ccy") if node is not None else None) or ""
        if currency not in EXPONENTS:
            raise Refused(f"{self.where}: {currency[:10]!r} is no currency of ISO 4217.")
        match, exponent = _AMOUNT.fullmatch(text), EXPONENTS[currency]
        if match is None:
            raise Refused(f"{self.where}: {text[:40]!r} is no amount.")
        fraction = match.group(2) or ""
        if len(fraction) > exponent:
            raise Refused(f"{self.where}: {text[:40]} has more decimals than {currency} has.")
        try:
            return Money(int(match.group(1) + fraction.ljust(exponent, "0")), currency)
        except FieldErrors:
            raise Refused(f"{self.where}: {text[:40]} {currency} is more than this can hold.") from None

    def signed(self, path: str = "Amt") -> Money:
        """The amount, negative when it left the account."""
        side, amount = self.need("CdtDbtInd"), self.money(path)
        if side not in ("CRDT", "DBIT"):
            raise Refused(f"{self.where}: CdtDbtInd is {side[:10]!r}, neither CRDT nor DBIT.")
        return amount if side == "CRDT" else Money(-amount.minor, amount.currency)

    def moment(self, *paths: str) -> datetime | None:
        """The instant or the day at the first of these paths, without a time zone where it has none."""
        text = self.text(*paths)
        try:
            found = datetime.fromisoformat(text) if text is not None else None
        except ValueError:
            found = datetime.min
        if found is not None and not 1990 <= found.year <= 2200:
            raise Refused(f"{self.where}: {(text or '')[:40]!r} is no date.")
        return found

    @property
    def digest(self) -> str:
        return hashlib.sha256(etree.tostring(self.element, with_tail=False)).hexdigest()


def read_document(raw: bytes, versions: tuple[str, ...], message: str) -> Node:
    """The element `message` in an ISO 20022 `Document` of one of these versions; Refused for everything else."""
    if not raw.strip():
        raise Refused("The file is empty.")
    if len(raw) > BYTES_MOST:
        raise Refused(f"The file has more than {BYTES_MOST // 1024 // 1024} MB; ask the bank for one day at a time.")
    root = _parsed(raw)
    space, _, name = str(root.tag).rpartition("}")
    version = space.removeprefix("{").removeprefix(_SPACE)
    if name != "Document" or version not in versions:
        told = version if space.startswith("{" + _SPACE) else str(root.tag)
        raise Refused(f"This is {told[:60]!r}; what is read here is {' or '.join(versions)}.")
    if [child.tag for child in root] != [f"{space}}}{message}"]:
        raise Refused(f"The document does not hold one {message} and nothing else.")
    return Node(root[0], "the file")


def _parsed(raw: bytes) -> etree._Element:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refused("The file is not UTF-8, which ISO 20022 demands.") from None
    # Before any parser sees it: an ISO 20022 message has no document type and no entities.
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise Refused("The file carries a document type or entities, which no bank's message does.")
    # The encoding is given, so that no other one in the file's head can hide what was looked for above.
    parser = etree.XMLParser(
        encoding="utf-8", resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False, recover=False,
        remove_comments=True, remove_pis=True,
    )
    try:
        return etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError as error:
        raise Refused(f"The file is not XML that can be read: {str(error)[:150]}.") from None
