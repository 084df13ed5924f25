"""The console's addresses."""

from __future__ import annotations

from django.contrib.auth import views as auth
from django.urls import path

from runtime_app.console import passwords, rules_urls
from runtime_app.console.case_forms import ADDRESSES
from runtime_app.console.views import (
    accounts,
    approval_acts,
    asking,
    cases,
    days,
    deciding,
    inbox,
    reconciliation,
    start,
    tasks,
    together,
    webhooks,
)

urlpatterns = [
    path("", start.start, name="start"),
    path("tenant/", start.switch_tenant, name="tenant_switch"),
    path("accounts/login/", passwords.SignIn.as_view(), name="login"),
    path("accounts/logout/", auth.LogoutView.as_view(), name="logout"),
    path("tasks/", tasks.tasks, name="tasks"),
    path("tasks/new/", asking.task_new, name="task_new"),
    path("tasks/<uuid:id>/", tasks.task, name="task"),
    path("tasks/<uuid:id>/story/", tasks.task_story, name="task_story"),
    path("tasks/<uuid:id>/input/", tasks.task_input, name="task_input"),
    path("tasks/<uuid:id>/amend/", tasks.task_amend, name="task_amend"),
    path("tasks/<uuid:id>/cancel/", tasks.task_cancel, name="task_cancel"),
    path("approvals/", inbox.approvals, name="approvals"),
    path("approvals/filters/", inbox.filter_save, name="approvals_filter"),
    path("approvals/filters/drop/", inbox.filter_drop, name="approvals_filter_drop"),
    path("approvals/together/", together.choose, name="approvals_choose"),
    path("approvals/together/<uuid:id>/", together.together, name="approvals_together"),
    path("approvals/<uuid:id>/", deciding.approval, name="approval"),
    path("approvals/<uuid:id>/live/", deciding.live, name="approval_live"),
    path("approvals/<uuid:id>/claim/", approval_acts.claim, name="approval_claim"),
    path("approvals/<uuid:id>/release/", approval_acts.release, name="approval_release"),
    path("approvals/<uuid:id>/over/", approval_acts.hand_over, name="approval_over"),
    path("approvals/<uuid:id>/snooze/", approval_acts.snooze, name="approval_snooze"),
    path("approvals/<uuid:id>/wake/", approval_acts.wake, name="approval_wake"),
    path("approvals/<uuid:id>/comment/", approval_acts.comment, name="approval_comment"),
    path("approvals/<uuid:id>/withdraw/", approval_acts.withdraw, name="approval_withdraw"),
    path("reconciliation/", reconciliation.reconciliation, name="reconciliation"),
    path("reconciliation/<uuid:id>/", reconciliation.operation, name="reconciliation_operation"),
    path("reconciliation/cases/<uuid:id>/", cases.case, name="case"),
    path("reconciliation/cases/<uuid:id>/evidence.json", cases.evidence, name="case_evidence"),
    *(
        path(f"reconciliation/cases/<uuid:id>/{address}/", cases.act, {"action": action}, name=f"case_{address}")
        for action, address in ADDRESSES.items()
    ),
    path("reconciliation/days/", days.days, name="days"),
    path("reconciliation/days/upload/", days.days_upload, name="days_upload"),
    path("reconciliation/days/<uuid:id>/", days.day, name="day"),
    path("reconciliation/days/<uuid:id>/upload/", days.day_upload, name="day_upload"),
    path("reconciliation/days/<uuid:id>/close/", days.day_close, name="day_close"),
    *rules_urls.urlpatterns,
    path("tenants/<slug:slug>/webhooks/", webhooks.webhooks_page, name="webhooks"),
    path("tenants/<slug:slug>/webhooks/<uuid:id>/drop/", webhooks.webhook_drop, name="webhook_drop"),
    path("tenants/<slug:slug>/accounts/", accounts.accounts_list, name="accounts"),
    path("tenants/<slug:slug>/accounts/new/", accounts.account_new, name="account_new"),
    path("tenants/<slug:slug>/accounts/<uuid:id>/", accounts.account, name="account"),
    path("tenants/<slug:slug>/accounts/<uuid:id>/key/", accounts.account_key, name="account_key"),
    path("tenants/<slug:slug>/accounts/<uuid:id>/secret/", accounts.account_secret, name="account_secret"),
    path("tenants/<slug:slug>/accounts/<uuid:id>/drop/", accounts.account_drop, name="account_drop"),
]
