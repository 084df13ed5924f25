"""The taste that a machine can keep: small rules over the product's own files, and a bad example for each."""

from __future__ import annotations

import ast
from pathlib import Path, PurePosixPath

import pytest

from tests.layout.rules import RULES, Rule

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    path.relative_to(ROOT) for app in ("runtime_app", "approvals", "config") for path in (ROOT / app).rglob("*.py")
)
VAGUE = {"service", "services", "manager", "managers", "helper", "helpers", "util", "utils", "common", "misc"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_product_keeps_the_rule(rule: Rule) -> None:
    files = [PurePosixPath(path) for path in FILES if rule.applies(PurePosixPath(path))]
    assert files, "a rule that applies to nothing"
    found = [f"{path}:{o.line} {o.says}" for path in files for o in rule.finds(path, _tree(path))]
    assert found == []


@pytest.mark.parametrize(("rule", "bad"), [(rule, bad) for rule in RULES for bad in rule.bad],
                         ids=lambda value: getattr(value, "name", None) or str(value)[:40])
def test_the_rule_refuses_a_bad_example(rule: Rule, bad: str) -> None:
    path = PurePosixPath(rule.bad_in)
    assert rule.applies(path)
    assert list(rule.finds(path, ast.parse(bad)))


def test_files_are_small_rooms() -> None:
    """Rarely past 350 lines, never past 500; migrations are written by Django."""
    long = {str(path): len((ROOT / path).read_text().splitlines()) for path in FILES if "migrations" not in path.parts}
    assert {path: lines for path, lines in long.items() if lines > 500} == {}


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [str(path) for path in FILES if VAGUE & set(path.with_suffix("").parts)] == []


def _tree(path: Path | PurePosixPath) -> ast.Module:
    return ast.parse((ROOT / path).read_text(), str(path))
