"""Layer text to a syntax tree; see :mod:`envdsl.syntax.parser` and :mod:`envdsl.syntax.tree`."""
