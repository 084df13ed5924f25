"""What a look may cost its account, and what its answer says of the provider's health."""

from __future__ import annotations

from runtime_app.ledger.calls import EndCall
from runtime_app.ledger.pace import AtPace, Grant
from runtime_app.reconciliation.pace import GOOD, LOOK, heard_on
from runtime_app.reconciliation.table import Finding
from runtime_app.transitions import Transition
from runtime_app.workflows.refund.facts import OperationFacts, RefundFacts
from runtime_app.workflows.types import Ports


def leave(facts: RefundFacts, ports: Ports, grant: Grant) -> AtPace:
    """Leave to look; and for one request more where the look may end in a resend or in asking to cancel."""
    operation = _operation(facts)
    may_send = operation.absents + 1 >= ports.timing.absent_count or facts.task.cancel_wished_at is not None
    return AtPace(operation.account, ports.timing, grant, cost=LOOK + may_send, sweeps=_sweeps(facts, ports))


def answered(facts: RefundFacts, ports: Ports, grant: Grant, look: Transition) -> AtPace:
    """What the look says of the provider's health: only one that showed nothing can be a trouble."""
    dark = [p.seen for p in look.parts if isinstance(p, EndCall) and p.finding == Finding.INCONCLUSIVE]
    heard = heard_on(dark[0]) if dark else GOOD
    return AtPace(_operation(facts).account, ports.timing, grant, heard=heard, sweeps=_sweeps(facts, ports))


def _sweeps(facts: RefundFacts, ports: Ports) -> bool:
    return ports.provider(facts.account).capabilities(facts.account).sweeps


def _operation(facts: RefundFacts) -> OperationFacts:
    assert facts.operation is not None  # a task reconciles only with an operation
    return facts.operation
