"""Going through the sources of a package: what treats a device that it does not name otherwise."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from refused_by_name.consequences import GO_ON, RAISE, ends, local_names, taken_cases
from refused_by_name.definitions import Function, Module, Package, read_module
from refused_by_name.device_lists import Scope, names_of
from refused_by_name.device_words import NEWCOMER, accelerators, all_names
from refused_by_name.expressions import expression_refusals, refusals_within
from refused_by_name.finding import Effect, Refusal, Scanned
from refused_by_name.name_tests import looks_at_name, truth
from refused_by_name.optimising import only_optimises

NO_DEVICES = frozenset({"meta"})
"""Types of tensors that are on no device: a test that spares them alone refuses every device alike."""
LONGEST = 200
"""Characters of a test or a message that are kept."""
PROGRESS_EVERY = 100
"""Files between two lines of progress."""
Body = Sequence[ast.stmt]


def scan(root: Path, package: str, version: str = "", say: Callable[[str], None] = lambda _: None) -> Scanned:
    """Return all refusals by name in the ``*.py`` below ``root``, the folder of ``package``.

    ``say`` receives lines of progress.
    """
    found, unread = Package(), []
    files = sorted(root.rglob("*.py"))
    say(f"{package}: reading {len(files)} files")
    for path in files:
        short = path.relative_to(root.parent).as_posix()
        name = short.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        try:
            found.modules[name] = read_module(name, short, path.read_text(encoding="utf-8"))
        except (OSError, SyntaxError, ValueError, RecursionError) as error:
            unread.append(f"{short}: {type(error).__name__}")
    refusals: list[Refusal] = []
    for number, (name, module) in enumerate(found.modules.items()):
        if number % PROGRESS_EVERY == 0:
            say(f"{package}: {number} of {len(files)} files scanned")
        if not accelerators().intersection(name.split(".")[1:]):  # a named device's own sources
            refusals.extend(refusals_of(module, found))
    refusals.sort(key=lambda each: (each.file, each.line, each.test))
    return Scanned(package, version, len(files), tuple(dict.fromkeys(refusals)), tuple(unread))


def refusals_of(module: Module, package: Package) -> Iterator[Refusal]:
    """Those of one source."""
    yield from _Walk(Scope(package, module), "").body(module.tree.body, ())


@dataclass(frozen=True)
class _Walk:
    """The statements of one function, or of a module's own level, in ``scope``."""

    scope: Scope
    function: str

    def body(self, body: Body, after: Body) -> Iterator[Refusal]:
        """Refusals in ``body``, which ``after`` follows where it comes to its end."""
        for place, node in enumerate(body):
            yield from self.statement(node, [*body[place + 1 :], *after])

    def statement(self, node: ast.stmt, after: Body) -> Iterator[Refusal]:
        """Refusals of one statement, and of those within it."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from self._definition(node)
            return
        yield from expression_refusals(node, self.scope, self.function)
        if isinstance(node, ast.If):
            yield from self._chain(node, after)
        elif isinstance(node, ast.Assert):
            yield from self._assertion(node)
        elif isinstance(node, ast.Match):
            yield from self._match(node, after)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            yield from self._loop(node, after)
        elif isinstance(node, ast.While):
            yield from self.body(node.body, ())
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            yield from self.body(node.body, after)
        elif isinstance(node, ast.Try):
            for inner in (node.body, node.orelse, *(each.body for each in node.handlers), node.finalbody):
                yield from self.body(inner, after)

    def _definition(self, node: Function | ast.ClassDef) -> Iterator[Refusal]:
        yield from expression_refusals(node, self.scope, self.function)
        name = f"{self.function}.{node.name}".strip(".")
        scope = self.scope
        if not isinstance(node, ast.ClassDef):
            scope = replace(scope, local=scope.local | local_names(node, scope.package))
        yield from _Walk(scope, name).body(node.body, ())

    def _chain(self, node: ast.If, after: Body) -> Iterator[Refusal]:
        """An ``if`` with all of its ``elif``: one refusal, at the first test that looks at the name."""
        tests, bodies, last = _branches(node)
        names = {name for test in tests for name in looks_at_name(test, all_names(), NEWCOMER, self.scope)}
        if names:
            yield from self._judged(node, tests, (bodies, last), names, after)
        for inner in (*bodies, last):
            yield from self.body(inner, after)
        for test in tests[1:]:
            yield from refusals_within(test, self.scope, self.function, tested=True)

    def _judged(
        self,
        node: ast.If,
        tests: Sequence[ast.expr],
        branches: tuple[list[Body], Body],
        names: set[str],
        after: Body,
    ) -> Iterator[Refusal]:
        bodies, last = branches
        for_all = {name: self._taken(tests, name) for name in (NEWCOMER, *names)}
        mine = for_all[NEWCOMER]
        reached = [last if place == len(bodies) else bodies[place] for place in sorted(mine)]
        raising = [body for body in reached if RAISE in self._straight(body)]
        kept = self._spared(node, names, after)
        test = next(each for each in tests if looks_at_name(each, all_names(), NEWCOMER, self.scope))
        if raising and kept - NO_DEVICES and self._differs(for_all, raising, bodies, last):
            yield self._refusal(test, kept, Effect.RAISES, _message(raising[0]))
            return
        if not raising and self._left_to_raise(node, names - NO_DEVICES, after):
            yield self._refusal(test, names, Effect.RAISES, _message(after))
            return
        other = names & accelerators()
        if other:
            theirs = {place for name in other for place in for_all[name] - mine}
            blocks = [last if place == len(bodies) else bodies[place] for place in sorted(theirs)]
            effect = Effect.OPTIMISATION if blocks and all(map(only_optimises, blocks)) else Effect.OTHER_PATH
            yield self._refusal(test, other, effect)

    def _taken(self, tests: Sequence[ast.expr], name: str) -> frozenset[int]:
        """Places of the branches that a device of type ``name`` may come into; the last is the ``else``."""
        found = set()
        for place, test in enumerate(tests):
            values = truth(test, name, self.scope)
            if True in values:
                found.add(place)
            if False not in values:
                return frozenset(found)
        return frozenset(found | {len(tests)})

    def _differs(
        self, taken: dict[str, frozenset[int]], raising: list[Body], bodies: list[Body], last: Body
    ) -> bool:
        """Whether one of the named devices does not have to come into a branch that raises."""
        places = {
            place for place in taken[NEWCOMER] if (last if place == len(bodies) else bodies[place]) in raising
        }
        return any(not places <= taken[name] for name in taken)

    def _straight(self, body: Body) -> frozenset[str]:
        """How a branch ends by its own statements; what a nested test decides is told of that test."""
        for statement in body:
            if isinstance(statement, (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match)):
                return frozenset({GO_ON})
            found = ends([statement], NEWCOMER, self.scope)
            if found != {GO_ON}:
                return found
        return frozenset({GO_ON})

    def _spared(self, node: ast.stmt, names: set[str], after: Body) -> set[str]:
        """Those of ``names`` for which the statement does not have to raise."""
        return {name for name in names if ends([node], name, self.scope) != {RAISE}}

    def _left_to_raise(self, node: ast.stmt, names: set[str], after: Body) -> bool:
        """Whether named devices leave here, and what follows raises for every other one."""
        if GO_ON not in ends([node], NEWCOMER, self.scope) or RAISE not in self._straight(after):
            return False
        return any(GO_ON not in ends([node], name, self.scope) for name in names)

    def _assertion(self, node: ast.Assert) -> Iterator[Refusal]:
        names = looks_at_name(node.test, all_names(), NEWCOMER, self.scope)
        unknown = truth(node.test, NEWCOMER, self.scope)
        spared = {name for name in names if True in truth(node.test, name, self.scope)}
        if spared - NO_DEVICES and False in unknown:
            says = ast.unparse(node.msg)[:LONGEST] if node.msg is not None else ""
            yield self._refusal(node.test, spared, Effect.RAISES, says)

    def _match(self, node: ast.Match, after: Body) -> Iterator[Refusal]:
        mine = taken_cases(node, NEWCOMER, self.scope)
        other = {
            name
            for name in all_names()
            if [*map(id, taken_cases(node, name, self.scope))] != [*map(id, mine)]
        }
        if other:
            raising = [case.body for case in mine if RAISE in self._straight(case.body)]
            if raising or self._left_to_raise(node, other, after):
                yield self._refusal(
                    node.subject, other, Effect.RAISES, _message(raising[0] if raising else after)
                )
            elif other & accelerators():
                yield self._refusal(node.subject, other & accelerators(), Effect.OTHER_PATH)
        for case in node.cases:
            yield from self.body(case.body, after)

    def _loop(self, node: ast.For | ast.AsyncFor, after: Body) -> Iterator[Refusal]:
        """A loop over names of devices that raises where none of them is this one."""
        names = set(names_of(node.iter, self.scope))
        follows = [*node.orelse, *after]
        if names and RAISE in self._straight(follows) and GO_ON in ends(node.body, NEWCOMER, self.scope):
            spared = {name for name in names if GO_ON not in ends(node.body, name, self.scope)}
            if spared:
                yield self._refusal(node.iter, spared, Effect.RAISES, _message(follows))
                return
        yield from self.body(node.body, ())
        yield from self.body(node.orelse, after)

    def _refusal(
        self, test: ast.expr, names: set[str] | frozenset[str], effect: Effect, says: str = ""
    ) -> Refusal:
        text = " ".join(ast.unparse(test).split())[:LONGEST]
        return Refusal(
            self.scope.module.file, test.lineno, self.function, text, tuple(sorted(names)), effect, says
        )


def _branches(node: ast.If) -> tuple[list[ast.expr], list[Body], Body]:
    """Tests and bodies of an ``if`` with its ``elif``, and what is done where none holds."""
    tests: list[ast.expr] = []
    bodies: list[Body] = []
    while True:
        tests.append(node.test)
        bodies.append(node.body)
        if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
            return tests, bodies, node.orelse
        node = node.orelse[0]


def _message(body: Body) -> str:
    """What the first raise in ``body`` says, else the call in its place, as the source has it."""
    for statement in body:
        if isinstance(statement, ast.Raise) and statement.exc is not None:
            return " ".join(ast.unparse(statement.exc).split())[:LONGEST]
    calls = [each.value for each in body if isinstance(each, (ast.Expr, ast.Return))]
    found = next((each for each in calls if isinstance(each, ast.Call)), None)
    return " ".join(ast.unparse(found).split())[:LONGEST] if found is not None else ""
