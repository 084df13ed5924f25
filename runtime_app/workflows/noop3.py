"""Three durable steps without an outside effect: what the runtime itself costs."""

from __future__ import annotations

from runtime_app.chronicle import Say
from runtime_app.states import Status
from runtime_app.transitions import NOW, Transition
from runtime_app.workflows.types import Facts, Handler, Ports, Workflow


def on_queued(facts: Facts, ports: Ports) -> Transition:
    return Transition(to=Status.READY, events=(Say("task.step_done", {"step": 1}), Say("task.ready")), due=NOW)


def on_ready(facts: Facts, ports: Ports) -> Transition:
    return Transition(to=Status.EXECUTING, events=(Say("task.step_done", {"step": 2}),), due=NOW)


def on_executing(facts: Facts, ports: Ports) -> Transition:
    return Transition(to=Status.COMPLETED, events=(Say("task.step_done", {"step": 3}), Say("task.completed")))


NOOP3 = Workflow(
    name="noop3", version=1, requestable=False,
    handlers={
        Status.QUEUED: Handler(on_queued), Status.READY: Handler(on_ready), Status.EXECUTING: Handler(on_executing),
    },
)
