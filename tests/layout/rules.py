"""Rules that the import contracts cannot see, each as a function from a file's syntax tree to what offends there."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class Offence:
    line: int
    says: str


@dataclass(frozen=True, slots=True)
class Rule:
    """`bad` is an example that the rule must refuse, as it would stand in `bad_in`; `applies` says to which files."""

    name: str
    finds: Callable[[PurePosixPath, ast.AST], Iterator[Offence]]
    applies: Callable[[PurePosixPath], bool]
    bad_in: str
    bad: tuple[str, ...]


WRITERS = {"runtime_app/transitions.py", "runtime_app/births.py"}
_SETS_STATUS = re.compile(
    r"UPDATE\s+runtime_app_task\b(?:(?!\bSET\b).)*\bSET\b(?:(?!\bWHERE\b|\bFROM\b).)*\bstatus\s*=", re.I | re.S)
_INSERTS_TASK = re.compile(r"INSERT\s+INTO\s+runtime_app_task\b", re.I)


def status_written(path: PurePosixPath, tree: ast.AST) -> Iterator[Offence]:
    """A task's status is written by transitions and births. A worker's own copy of a task (leases.py) is no row."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign) and path.name != "leases.py":
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Attribute) and target.attr == "status" for target in targets):
                yield Offence(node.lineno, "assigns a status")
        if isinstance(node, ast.Call) and _name(node) in {"update", "bulk_update", "create", "get_or_create", "Task"}:
            about_tasks = _name(node) in {"update", "Task"} or "Task.objects" in ast.unparse(node.func)
            if about_tasks and any(k.arg == "status" for k in node.keywords):
                yield Offence(node.lineno, "writes a status by the ORM")
        if isinstance(node, ast.Constant | ast.JoinedStr):
            sql = _text(node)
            if _SETS_STATUS.search(sql) or _INSERTS_TASK.search(sql):
                yield Offence(node.lineno, "writes a task by SQL")


# What Django itself writes into a migration: defaults and column types by their dotted names.
_NAMED_BY_DJANGO = {"runtime_app.ids", "runtime_app.models.columns", "runtime_app.models.event", "runtime_app.states"}


def application_in_migration(path: PurePosixPath, tree: ast.AST) -> Iterator[Offence]:
    """A migration runs for ever as it was written, and the application changes under it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in {"runtime_app", "approvals"}:
            yield Offence(node.lineno, f"imports from {node.module}")
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in {"runtime_app", "approvals"} and alias.name not in _NAMED_BY_DJANGO:
                    yield Offence(node.lineno, f"imports {alias.name}")
        if isinstance(node, ast.FunctionDef):
            inside = [n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom)]
            yield from (Offence(n.lineno, "imports inside a function") for n in inside)


def guardian_used(path: PurePosixPath, tree: ast.AST) -> Iterator[Offence]:
    """The shortcuts default to model-wide grants and superusers: they stand in one place, wrapped."""
    for node in ast.walk(tree):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if any(name.split(".")[0] == "guardian" for name in names):
            yield Offence(node.lineno, "uses guardian")  # type: ignore[attr-defined]


def saved_whole(path: PurePosixPath, tree: ast.AST) -> Iterator[Offence]:
    """A bare save() writes every column back as it was read, over whatever others wrote meanwhile."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        named = {keyword.arg for keyword in node.keywords}
        if node.func.attr in {"save", "asave"} and "update_fields" not in named:
            yield Offence(node.lineno, "saves without update_fields")


def commit_without_points(path: PurePosixPath, tree: ast.AST) -> Iterator[Offence]:
    """Every commit of the engine can be crashed before and after: a point is last in the block, and one follows it."""
    for body in _bodies(tree):
        for index, node in enumerate(body):
            if not (isinstance(node, ast.With) and any(_is_atomic(item.context_expr) for item in node.items)):
                continue
            after = body[index + 1] if index + 1 < len(body) else None
            if _point(node.body[-1]) is None:
                yield Offence(node.lineno, "commits without a point before it")
            if _point(after) is None:
                yield Offence(node.lineno, "commits without a point after it")
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        if any(_is_atomic(decorator) for decorator in function.decorator_list):
            yield Offence(function.lineno, "commits as a decorator, where no point can be")


# The functions through which adapters reach the network, and the files whose whole purpose they are.
_NETWORK = {"exchange", "raw_request", "call", "_send", "urlopen"}
_TRANSPORT = {("wire.py", "exchange"), ("sandbox.py", "_send"), ("stripe_client.py", "call")}


# What has bodies of its own, which are looked at by themselves.
_COMPOUND = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.FunctionDef, ast.Match)


def network_without_points(path: PurePosixPath, tree: ast.AST) -> Iterator[Offence]:
    """Every call that may reach a provider stands between two points, `….before` and `….after`."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        if (path.name, function.name) in _TRANSPORT or path.name == "stripe_client.py":
            continue
        for body in _bodies(function):
            for index, node in enumerate(body):
                if isinstance(node, _COMPOUND) or not any(
                    isinstance(n, ast.Call) and _name(n) in _NETWORK for n in ast.walk(node)
                ):
                    continue
                before = _point(body[index - 1]) if index else None
                after = _point(body[index + 1]) if index + 1 < len(body) else None
                if not (before or "").endswith(".before") or not (after or "").endswith(".after"):
                    yield Offence(node.lineno, "calls outside without a point before and after it")


def clock_of_the_process(path: PurePosixPath, tree: ast.AST) -> Iterator[Offence]:
    """The database's clock decides; a process's own may be wrong, and no test can move it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {
            "datetime.now", "datetime.utcnow", "timezone.now", "time.time", "date.today", "datetime.today"
        }:
            yield Offence(node.lineno, f"reads the process's clock by {ast.unparse(node.func)}")


def row_fetched_by_a_door(path: PurePosixPath, tree: ast.AST) -> Iterator[Offence]:
    """A door asks `access` for a row, which asks for the permission; it does not fetch one by its id."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called, named = ast.unparse(node.func), {keyword.arg for keyword in node.keywords}
            scoped = "tenant" in named or called.startswith("Installation.")
            if called.endswith((".objects.get", ".objects.aget")) and not scoped:
                yield Offence(node.lineno, f"fetches by {called}")
            if _name(node) in {"get_object_or_404", "get_list_or_404", "aget_object_or_404"}:
                yield Offence(node.lineno, f"fetches by {_name(node)}")


def trusted_markup(path: PurePosixPath, tree: ast.AST) -> Iterator[Offence]:
    """Only text that stands in the code is marked as safe; format_html escapes what it is given."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and _name(node) in {"mark_safe", "SafeString"}):
            continue
        if not all(isinstance(argument, ast.Constant) for argument in node.args):
            yield Offence(node.lineno, f"uses {_name(node)}")


def _name(call: ast.Call) -> str:
    return _last(call.func)


def _last(node: ast.expr) -> str:
    """The last part of a dotted name; empty for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(str(v.value) if isinstance(v, ast.Constant) else "…" for v in node.values)


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            if isinstance(body := getattr(node, field, None), list) and body and isinstance(body[0], ast.stmt):
                yield body


def _is_atomic(node: ast.expr) -> bool:
    return _last(node.func if isinstance(node, ast.Call) else node) == "atomic"


def _point(node: ast.stmt | None) -> str | None:
    """The name of the point that this statement is, with … for what is filled in; None for another statement."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _name(node.value) == "point":
        name = node.value.args[0]
        return _text(name) if isinstance(name, ast.Constant | ast.JoinedStr) else None
    return None


def _under(*folders: str, but: tuple[str, ...] = ()) -> Callable[[PurePosixPath], bool]:
    def applies(path: PurePosixPath) -> bool:
        text = str(path)
        return text.startswith(folders) and not text.startswith(but)

    return applies


_ENGINE = tuple(f"runtime_app/{name}" for name in (
    "transitions.py", "births.py", "leases.py", "outbox.py", "drain.py", "late.py", "jobs.py", "worker.py", "clock.py",
    "bell.py", "senders.py", "chronicle.py", "ledger/", "reconciliation/", "workflows/"))
_DOORS = ("runtime_app/api/", "runtime_app/console/", "approvals/", "runtime_app/tasks.py")
_PRODUCT = ("runtime_app/", "approvals/", "config/")

RULES = (
    Rule("a task's status is written in one place", status_written,
         lambda p: str(p) not in WRITERS and _under(*_PRODUCT, but=(
             "runtime_app/sandbox/", "runtime_app/adapters/", "runtime_app/migrations/"))(p),
         "runtime_app/console/x.py", (
             "task.status = 'ready'", "Task.objects.filter(id=1).update(status='ready')", "Task(status='ready')",
             "run('UPDATE runtime_app_task AS t SET due_at = now(), status = %s WHERE id = 1')",
             "run(f'INSERT INTO runtime_app_task ({x}) VALUES (1)')", "Task.objects.create(tenant=t, status='x')")),
    Rule("migrations do not import the application", application_in_migration,
         lambda p: "migrations" in p.parts, "runtime_app/migrations/0009_x.py", (
             "from runtime_app.models import Task", "import runtime_app.tasks",
             "def forwards(apps, schema_editor):\n    import runtime_app.ids")),
    Rule("guardian stands in one place", guardian_used,
         _under(*_PRODUCT, but=("runtime_app/members.py", "runtime_app/access.py", "runtime_app/models/tenant.py")),
         "runtime_app/console/x.py", ("from guardian.shortcuts import assign_perm", "import guardian.shortcuts")),
    Rule("no row is saved whole", saved_whole, _under(*_PRODUCT), "runtime_app/members.py",
         ("task.save()", "person.save(force_update=True)")),
    Rule("every commit of the engine has points", commit_without_points, _under(*_ENGINE, "approvals/"),
         "runtime_app/leases.py", (
             "with transaction.atomic(durable=True):\n    run('x')\npoint('x.committed')",
             "with transaction.atomic():\n    run('x')\n    point('x.commit')\nreturn_it()",
             "@transaction.atomic\ndef f():\n    run('x')")),
    Rule("every call outside has points", network_without_points, _under("runtime_app/adapters/"),
         "runtime_app/adapters/payments/x.py", (
             "def f(self):\n    seen = self._calls.call(a, 'get')\n    return seen",
             "def f(self):\n    point('x.create.before')\n    return self._send(1)",
             "def f(self):\n    x = 1\n    seen = exchange(1)\n    point('x.create.after')")),
    Rule("the engine's time is the database's", clock_of_the_process,
         _under(*_ENGINE, "runtime_app/tasks.py", "approvals/"), "runtime_app/leases.py",
         ("now = datetime.now(UTC)", "now = timezone.now()", "now = time.time()")),
    Rule("a door does not fetch a row by its id", row_fetched_by_a_door, _under(*_DOORS),
         "runtime_app/api/x.py", ("Task.objects.get(pk=id)", "get_object_or_404(Task, pk=id)")),
    Rule("no text is marked as safe", trusted_markup, _under(*_PRODUCT), "runtime_app/console/x.py",
         ("mark_safe(reason)", "safestring.mark_safe(x)")),
)
