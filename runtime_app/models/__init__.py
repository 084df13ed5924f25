"""What is stored, one noun a file."""

from runtime_app.models.account import Account, AccountPace
from runtime_app.models.attempt import Attempt, Step
from runtime_app.models.balance import Balance, Hold
from runtime_app.models.case import Case, CaseEntry
from runtime_app.models.clock import Installation, RuntimeClock
from runtime_app.models.columns import RuntimeNow
from runtime_app.models.event import Event, EventPayload
from runtime_app.models.intent import Intent
from runtime_app.models.notice import Notice, PaymentLook
from runtime_app.models.operation import Call, Evidence, Operation
from runtime_app.models.person import Membership, ServiceAccount, User
from runtime_app.models.session import Message, Session
from runtime_app.models.statement import Statement, StatementDay, StatementLine
from runtime_app.models.task import Task
from runtime_app.models.tenant import Tenant, TenantGroupGrant, TenantUserGrant

__all__ = [
    "Account", "AccountPace", "Attempt", "Balance", "Call", "Case", "CaseEntry", "Event", "EventPayload", "Evidence",
    "Hold", "Installation", "Intent", "Membership", "Message", "Notice", "Operation", "PaymentLook", "RuntimeClock",
    "RuntimeNow", "ServiceAccount", "Session", "Statement", "StatementDay", "StatementLine", "Step", "Task", "Tenant",
    "TenantGroupGrant", "TenantUserGrant", "User",
]
