"""The command line: a thin face over :mod:`envdsl.app`. Results go to stdout, all else to stderr."""
