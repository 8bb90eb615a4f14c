"""The abstract machine: forcing thunks, calling functions, and the budget of both.

Python code calls Python code only (no callback ever goes through a C function), so that depth here costs
heap, not C stack: a thousand nested calls are a matter of :attr:`Limits.depth` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from envdsl.errors import Note
from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.files import Files
from envdsl.evaluate.limits import Limits
from envdsl.evaluate.values import (
    RUNNING,
    Builtin,
    Closure,
    Function,
    Partial,
    PathValue,
    Slot,
    Thunk,
    Value,
    describe,
    with_article,
)
from envdsl.model.span import Span


class Machine:
    """One evaluation's state. ``files`` is all that it can see of the world; ``trace`` receives what ``trace`` says."""

    def __init__(self, limits: Limits, files: Files, trace: Callable[[str], None]) -> None:
        self.limits = limits
        self.files = files
        self.trace = trace
        self.steps = limits.steps
        self.depth = 0
        self.memory = limits.memory
        self._max_depth = limits.depth

    # -- evaluation --------------------------------------------------------------------------------

    def force(self, slot: Slot) -> Value:
        """The value of a slot, evaluated to its outermost constructor."""
        if type(slot) is not Thunk:
            return slot
        code = slot.code
        frame = slot.frame
        if code is None or frame is None:
            if frame is RUNNING:
                raise EvaluationError(
                    "eval-infinite-recursion", "infinite recursion: this value is needed to compute itself"
                )
            return slot.value
        depth = self.depth
        self.steps -= 1
        if self.steps < 0 or depth >= self._max_depth:
            self._exhausted()
        self.depth = depth + 1
        slot.code = None
        slot.frame = RUNNING
        try:
            value = code(frame)
        except BaseException as failure:
            slot.code = code
            slot.frame = frame
            if slot.origin is not None and isinstance(failure, EvaluationError):
                failure.note(slot.origin)
            raise
        self.depth = depth
        slot.value = value
        slot.frame = None
        return value

    def call(self, function: Value, argument: Slot) -> Value:
        """``function argument``; sets with ``__functor`` are functions too."""
        if type(function) is Closure:
            depth = self.depth
            self.steps -= 1
            if self.steps < 0 or depth >= self._max_depth:
                self._exhausted()
            self.depth = depth + 1
            procedure = function.procedure
            if procedure.bind is None:
                value = procedure.body([function.frame, argument])
            else:
                value = procedure.body(procedure.bind(function.frame, argument))
            self.depth = depth
            return value
        if isinstance(function, Builtin):
            return self._builtin(function, (argument,))
        if isinstance(function, Partial):
            return self._builtin(function.builtin, (*function.arguments, argument))
        if isinstance(function, dict) and "__functor" in function:
            return self.call(self.call(self.force(function["__functor"]), function), argument)
        raise not_a_function(function)

    def call2(self, function: Value, first: Slot, second: Slot) -> Value:
        return self.call(self.call(function, first), second)

    def later(self, function: Slot, argument: Slot) -> Thunk:
        """``function argument``, as a thunk."""
        self.allocate(128)
        return Thunk(self._run_later, [function, argument])

    def _run_later(self, frame: list[Any]) -> Value:
        return self.call(self.force(frame[0]), frame[1])

    def _builtin(self, builtin: Builtin, arguments: tuple[Slot, ...]) -> Value:
        if len(arguments) < builtin.arity:
            return Partial(builtin, arguments)
        depth = self.depth
        self.steps -= 1
        if self.steps < 0 or depth >= self._max_depth:
            self._exhausted()
        self.depth = depth + 1
        function = builtin.function
        try:
            # Spelled out, because a call with `*arguments` goes through C on Python 3.11.
            match arguments:
                case (a,):
                    value = function(self, a)
                case (a, b):
                    value = function(self, a, b)
                case (a, b, c):
                    value = function(self, a, b, c)
                case _:
                    raise AssertionError(builtin.name)
        except EvaluationError as failure:
            if failure.code not in ("eval-throw", "eval-abort"):
                failure.note(Note(f"while calling the builtin `{builtin.name}`", failure.span))
            raise
        self.depth = depth
        return value

    def deep(self, slot: Slot, seen: set[int] | None = None) -> Value:
        """Evaluate a slot and everything inside it; cycles are fine."""
        value = self.force(slot)
        if isinstance(value, (list, dict)) and value:
            seen = set() if seen is None else seen
            if id(value) in seen:
                return value
            seen.add(id(value))
            depth = self.enter()
            for item in value if isinstance(value, list) else value.values():
                self.deep(item, seen)
            self.depth = depth
        return value

    # -- the budget --------------------------------------------------------------------------------

    def charge(self, steps: int) -> None:
        """Take ``steps`` from the budget for work that a builtin is about to do."""
        self.steps -= steps
        if self.steps < 0:
            self._exhausted()

    def allocate(self, size: int) -> None:
        """Take ``size`` bytes from the budget for memory."""
        self.memory -= size
        if self.memory < 0:
            raise EvaluationError(
                "eval-too-large",
                f"the evaluation makes more than {self.limits.memory // 2**20} MiB of values",
                hint="a list or string probably grows with every step of a loop",
                fatal=True,
            )

    def sized_string(self, text: str) -> str:
        """``text``, accounted for."""
        if len(text) > self.limits.string:
            self.refuse_string(len(text))
        self.allocate(len(text))
        self.scan(text)
        return text

    def scan(self, text: str) -> None:
        """Account for a walk over ``text``, which Python does quickly, but not for nothing."""
        if len(text) > 512:
            self.charge(len(text) >> 10)

    def refuse_string(self, length: int) -> NoReturn:
        raise EvaluationError(
            "eval-too-large", f"a string of {length:,} characters is too long: at most {self.limits.string:,}"
        )

    def sized(self, length: int) -> None:
        """Account for a list or set of ``length`` that is about to be made, and the walk over it."""
        if length > self.limits.items:
            raise EvaluationError(
                "eval-too-large", f"a list or set of {length:,} elements is too long: at most {self.limits.items:,}"
            )
        self.charge(1 + length // 8)
        self.allocate(8 * length)

    def enter(self) -> int:
        """Go one level deeper into data; the caller sets :attr:`depth` back to what this returns.

        After an error nobody does, so whoever catches one restores the depth of his own (``tryEval``, ``attempt``).
        """
        depth = self.depth
        self.steps -= 1
        if self.steps < 0 or depth >= self._max_depth:
            self._exhausted()
        self.depth = depth + 1
        return depth

    def _exhausted(self) -> NoReturn:
        if self.steps < 0:
            raise EvaluationError(
                "eval-too-many-steps",
                f"the evaluation takes more than {self.limits.steps:,} steps",
                hint="layer files are for data; is there a loop whose work grows with every turn?",
                fatal=True,
            )
        raise too_deep(self.limits)

    # -- expectations ------------------------------------------------------------------------------

    def integer(self, slot: Slot) -> int:
        value = self.force(slot)
        if type(value) is int:
            return value
        raise expected("an integer", value)

    def boolean(self, slot: Slot) -> bool:
        value = self.force(slot)
        if type(value) is bool:
            return value
        raise expected("a boolean", value)

    def string(self, slot: Slot) -> str:
        value = self.force(slot)
        if isinstance(value, str):
            return value
        raise expected("a string", value)

    def list(self, slot: Slot) -> list[Slot]:
        value = self.force(slot)
        if isinstance(value, list):
            return value
        raise expected("a list", value)

    def set(self, slot: Slot) -> dict[str, Slot]:
        value = self.force(slot)
        if isinstance(value, dict):
            return value
        raise expected("a set", value)

    def function(self, slot: Slot) -> Function:
        value = self.force(slot)
        if isinstance(value, (Closure, Builtin, Partial)):
            return value
        raise expected("a function", value)

    def callee(self, slot: Slot) -> Value:
        """Something that can be called: a function, or a set with ``__functor``."""
        value = self.force(slot)
        if isinstance(value, (Closure, Builtin, Partial)) or (isinstance(value, dict) and "__functor" in value):
            return value
        raise not_a_function(value)

    def path(self, slot: Slot) -> PathValue:
        value = self.force(slot)
        if isinstance(value, PathValue):
            return value
        hint = "write it without quotes, beginning with `./` or `../`" if isinstance(value, str) else None
        raise EvaluationError("eval-type", f"expected a path, but got {describe(value)}", hint=hint)


def expected(what: str, value: Value, *, span: Span | None = None) -> EvaluationError:
    return EvaluationError("eval-type", f"expected {what}, but got {describe(value)}", span=span)


def not_a_function(value: Value) -> EvaluationError:
    return EvaluationError("eval-not-a-function", f"cannot call {describe(value)}: it is not a function")


def coercion(value: Value) -> EvaluationError:
    hint = None
    if value is None or isinstance(value, (int, list)):
        hint = "use `toString` to make a string of it"
    elif isinstance(value, PathValue):
        hint = "`toString` gives the path as text; it has no meaning outside of the project"
    return EvaluationError("eval-type", f"cannot make a string of {with_article(value)}", hint=hint)


def too_deep(limits: Limits) -> EvaluationError:
    return EvaluationError(
        "eval-too-deep",
        f"the evaluation is nested too deeply: more than {limits.depth:,} calls wait for one another",
        hint="is there a function that calls itself without end?",
    )
