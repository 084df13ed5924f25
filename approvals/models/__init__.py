from approvals.models.absence import Absence
from approvals.models.approval import OPEN, STATES, VERDICTS, Approval, Decision
from approvals.models.bulk import Bulk, BulkItem
from approvals.models.delivery import Delivery, Preferences, WebhookEndpoint
from approvals.models.inbox import SavedFilter, Snooze
from approvals.models.note import Note
from approvals.models.policy import Policy
from approvals.models.team import Team, TeamMember

__all__ = [
    "OPEN", "STATES", "VERDICTS", "Absence", "Approval", "Bulk", "BulkItem", "Decision", "Delivery", "Note", "Policy",
    "Preferences", "SavedFilter", "Snooze", "Team", "TeamMember", "WebhookEndpoint",
]
