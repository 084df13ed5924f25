"""Which addresses of outside receivers we send to: https, and nothing inside our own network."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

MOST = 500
_NAT64 = IPv6Network("64:ff9b::/96")


def wrong(url: str, *, inside: bool) -> str | None:
    """What is wrong with the address as it is written, as a sentence. `inside` allows http and our own network, as a
    trial needs it."""
    if len(url) > MOST or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return f"Use an address of at most {MOST} printable ASCII characters, without blanks."
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "This is not an address."
    if parts.scheme not in ({"https", "http"} if inside else {"https"}):
        return "Use an address that begins with https://."
    if not host or port == 0:
        return "The address names no host, or no port that exists."
    if "@" in parts.netloc or parts.fragment:
        return "Leave out names, passwords and what follows a #."
    return None


def unreachable(url: str, *, inside: bool) -> str | None:
    """What is wrong with the address, or with where its name leads at this moment, as a sentence. Asks the resolver."""
    if (problem := wrong(url, inside=inside)) is not None:
        return problem
    parts = urlsplit(url)
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return "The host of this address cannot be found."
    if not inside and not all(is_public(str(one[4][0])) for one in found):
        return "This address leads into a network that is not public."
    return None


def is_public(address: str) -> bool:
    """Whether this IP address is one of the public internet, whatever form it is written in."""
    try:
        ip: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped is not None:
            ip = ip.ipv4_mapped
        elif ip.sixtofour is not None or ip.teredo is not None:
            return False  # tunnels that carry another address in them
        elif ip in _NAT64:
            ip = IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.is_global and not ip.is_multicast
