"""The addresses of policies and teams, and of what concerns a person alone."""

from __future__ import annotations

from django.urls import path

from runtime_app.console.views import mine, policies, policy_try, teams

urlpatterns = [
    path("mine/", mine.decisions, name="mine"),
    path("mine/decisions.csv", mine.decisions_csv, name="mine_csv"),
    path("mine/absences/", mine.own_absences, name="mine_absences"),
    path("mine/absences/<uuid:id>/end/", mine.absence_end, name="absence_end"),
    path("mine/preferences/", mine.own_preferences, name="mine_preferences"),
    path("tenants/<slug:slug>/policies/", policies.policies_page, name="policies"),
    path("tenants/<slug:slug>/policies/new/", policies.policy_new, name="policy_new"),
    path("tenants/<slug:slug>/policies/try/", policy_try.policy_try, name="policy_try"),
    path("tenants/<slug:slug>/policies/<uuid:id>/", policies.policy_version, name="policy_version"),
    path("tenants/<slug:slug>/policies/<uuid:id>/agree/", policies.policy_agree, name="policy_agree"),
    path("tenants/<slug:slug>/policies/<uuid:id>/refuse/", policies.policy_refuse, name="policy_refuse"),
    path("tenants/<slug:slug>/teams/", teams.teams_page, name="teams"),
    path("tenants/<slug:slug>/teams/<uuid:id>/add/", teams.team_add, name="team_add"),
    path("tenants/<slug:slug>/teams/<uuid:id>/remove/", teams.team_remove, name="team_remove"),
    path("tenants/<slug:slug>/absences/", mine.all_absences, name="absences"),
]
