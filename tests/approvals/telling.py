"""What tests of telling people share: people with addresses, the relay and the rounds, and a receiver of webhooks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from approvals import reminders, telling
from approvals.models import Delivery, Preferences
from runtime_app import jobs
from runtime_app.models import User
from tests.world import World


def give_addresses(world: World) -> None:
    for person in User.objects.all():
        company = "birch" if person == world.bea else "amber"
        User.objects.filter(pk=person.pk).update(email=f"{person.username}@{company}.example")




def relay() -> None:
    """What the outbox holds becomes deliveries."""
    jobs.relay()


def tell(world: World) -> None:
    """Everything that is due now is told; nothing waits for a time that has not come."""
    relay()
    send(world)


def send(world: World) -> None:
    for _ in range(100):
        if not telling.work(world.ports(), actor="test", limit=20):
            return
    raise AssertionError("something is due again and again")


def remind(world: World) -> int:
    return reminders.work(world.ports(), actor="worker:test", limit=1)


def wish(person: User, **wishes: Any) -> None:
    Preferences.objects.update_or_create(person=person, defaults=wishes)


def states(what: str) -> dict[str, str]:
    """By username how the delivery of this stands."""
    found = Delivery.objects.filter(what=what, person__isnull=False)
    return dict(found.values_list("person__username", "state"))


class Receiver:
    """A receiver of webhooks: every request it got, and what it answers (status, headers, body)."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        self.url = ""


@contextmanager
def receiver() -> Iterator[Receiver]:
    kept = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            kept.got.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            status, headers, said = kept.answers.pop(0) if kept.answers else (204, {}, b"")
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            with suppress(OSError):  # who has read enough hangs up
                self.wfile.write(said)

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    kept.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield kept
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


