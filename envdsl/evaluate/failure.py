"""An error on its way up through the interpreter.

It gathers the trail of definitions while it unwinds, which a frozen diagnostic could not; at the
border of the room it becomes an :class:`~envdsl.errors.EnvdslError`.
"""

from __future__ import annotations

from envdsl.errors import Diagnostic, EnvdslError, Note
from envdsl.model.span import Span

# The innermost notes say what failed, the outermost where it began; what is between them is dropped.
_TRAIL_LENGTH = 10


class EvaluationError(Exception):
    """Raised inside this room only.

    ``catchable`` marks what ``tryEval`` catches (``throw`` and ``assert``); ``fatal`` that the budget of
    the whole evaluation is gone, so that nothing else is worth trying; ``reported`` that the finding has
    been recorded already, and this is only its echo.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        span: Span | None = None,
        hint: str | None = None,
        catchable: bool = False,
        fatal: bool = False,
        reported: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.span = span
        self.hint = hint
        self.catchable = catchable
        self.fatal = fatal
        self.reported = reported
        self.trail: list[Note] = []

    def at(self, span: Span) -> EvaluationError:
        """This error, shown at ``span`` unless a nearer place is known already."""
        if self.span is None:
            self.span = span
        return self

    def note(self, note: Note) -> None:
        """Add a step to the trail; called from the inside out. A step that recurs is told once."""
        trail = self.trail
        if note in trail:
            return
        if len(trail) >= _TRAIL_LENGTH:
            del trail[_TRAIL_LENGTH // 2]
        trail.append(note)

    def diagnostic(self, fallback: Span | None = None) -> Diagnostic:
        """The finding as data; ``fallback`` is the place to show where the interpreter knew none."""
        return Diagnostic(
            self.code,
            self.message,
            span=self.span or fallback,
            trail=tuple(self.trail),
            hint=self.hint,
        )

    def release(self) -> None:
        """Drop the Python traceback, from the inside out.

        It may be a hundred thousand frames long, each of which holds the next; freed as a chain they would be
        freed recursively, in C, and since Python 3.13 as deep as ten thousand levels.
        """
        traceback, self.__traceback__ = self.__traceback__, None
        frames = []
        while traceback is not None:
            frames.append(traceback.tb_frame)
            inner, traceback.tb_next = traceback.tb_next, None
            traceback = inner
        while frames:
            frames.pop()

    def error(self, fallback: Span | None = None) -> EnvdslError:
        return EnvdslError(self.diagnostic(fallback))
