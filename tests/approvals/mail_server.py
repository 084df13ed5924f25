"""A mail server of a test's own that speaks enough SMTP for Django's backend, and misbehaves as it is told."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import Message


class MailServer:
    """`took` are the mails that were handed over. Each of `faults` is for one mail: `later` answers 451, `no` 550, and
    `hang up` ends the connection behind the mail, without an answer.
    """

    def __init__(self) -> None:
        self.took: list[Message] = []
        self.faults: list[str] = []
        self.port = 0


@contextmanager
def mail_server() -> Iterator[MailServer]:
    kept = MailServer()

    class Handler(socketserver.StreamRequestHandler):
        def say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

        def handle(self) -> None:
            self.say("220 test")
            while line := self.rfile.readline():
                verb = line.split(b":")[0].strip().upper()
                if verb == b"DATA":
                    if not self.data():
                        return
                else:
                    self.say("221 bye" if verb == b"QUIT" else "250 ok")

        def data(self) -> bool:
            self.say("354 go on")
            lines = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line.removeprefix(b"."))
            fault = kept.faults.pop(0) if kept.faults else ""
            if fault not in {"later", "no"}:
                kept.took.append(message_from_bytes(b"".join(lines)))
            if fault != "hang up":
                self.say({"later": "451 come again", "no": "550 not here"}.get(fault, "250 taken"))
            return fault != "hang up"

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        kept.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield kept
        finally:
            server.shutdown()
            thread.join()
