"""The tree of commands. A command's module is imported when the command is used, not before."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import click

from envdsl import __version__
from envdsl.errors import EnvdslError, ExitStatus


class Entry(NamedTuple):
    """Where a command stands (module and attribute below ``envdsl.cli``) and its line in ``--help``."""

    module: str
    attribute: str
    summary: str


SECTIONS = {
    "Start": {
        "init": Entry("starting", "init", "Begin a project that locks and builds as it stands."),
        "tutorial": Entry("starting", "tutorial", "A tour of five minutes in a scratch directory."),
        "doctor": Entry("doctor", "doctor", "Find out what this machine can do, and what to do about the rest."),
        "python": Entry("python", "python", "Managed interpreters."),
    },
    "Write layers": {
        "check": Entry("language", "check", "Check every layer file and report all errors."),
        "fmt": Entry("fmt", "fmt", "Write layer files in their one canonical form."),
        "eval": Entry("language", "evaluate", "Evaluate an expression, or one layer's specification."),
        "repl": Entry("repl", "repl", "Try the language, with the layers of the project in scope."),
        "lsp": Entry("lsp", "lsp", "Serve editors: errors as you type, hover, completion, rename, formatting."),
        "import": Entry("importing", "import_", "Take over pylock.toml, requirements.txt, uv.lock or a venv."),
    },
    "Lock": {
        "lock": Entry("lock", "lock", "Resolve layers into lock files, or check that locks are current."),
        "outdated": Entry("packages", "outdated", "What the indexes have newer than the locks."),
        "update": Entry("update", "update", "Upgrade locks, as a branch that is ready for review."),
        "merge-lock": Entry("merge", "merge_lock", "Merge two versions of a lock (a merge driver for git)."),
    },
    "Build": {
        "build": Entry("build", "build", "Build what is missing and print each layer's id and path."),
        "ensure": Entry("build", "ensure", "Make the root ready: interpreter, locks, layers, current, probes."),
        "fetch": Entry("transfer", "fetch", "Put the wheels that locks pin into the wheelhouse."),
        "bundle": Entry("transfer", "bundle", "One file with all that a machine without a network needs."),
        "export": Entry("export", "export", "Pins, a wheelhouse or a venv for other installers."),
    },
    "Look inside": {
        "ls": Entry("inspect", "ls", "List the layers of the project and the store."),
        "show": Entry("inspect", "show", "Show what a layer holds."),
        "path": Entry("inspect", "path", "Print the store path of a layer."),
        "tree": Entry("packages", "tree", "What a layer asks for, and what that requires."),
        "why": Entry("packages", "why", "Every chain of requirements that brings a package in."),
        "search-import": Entry("packages", "search_import", "Which distribution gives an import name."),
        "graph": Entry("inspect", "graph", "Show the derivation graph."),
        "show-derivation": Entry("inspect", "show_derivation", "Print one derivation."),
    },
    "Review": {
        "diff": Entry("diff", "diff", "Say what changed between two states of the locks."),
        "licenses": Entry("packages", "licenses", "The licences that packages of layers state."),
        "sbom": Entry("security", "sbom", "The bill of materials of a layer or session (CycloneDX)."),
        "audit": Entry("security", "audit", "Known vulnerabilities of locked packages, and what indexes withdrew."),
    },
    "Run": {
        "session": Entry("session", "session", "Sessions: named bindings to exact layers."),
        "run": Entry("session", "run", "Run a command in a session's sandbox."),
    },
    "Ask for packages": {
        "env": Entry("env", "env", "Packages of a session: what is installed, asking for more."),
        "requests": Entry("requests", "requests", "What sessions ask for, and deciding on it."),
        "catalog": Entry("catalog", "catalog", "Which packages sessions may have: check it, ask it."),
        "worker": Entry("worker", "worker", "Resolve, build and bind what sessions ask for."),
        "serve": Entry("serve", "serve", "Serve the HTTP API, the MCP endpoint and the admin page."),
        "mcp": Entry("mcp", "mcp", "Serve python_env for one session over stdio (Model Context Protocol)."),
        "token": Entry("token", "token", "Access tokens of the service."),
        "audit-log": Entry("audit_log", "audit_log", "Show, verify and export who did what."),
    },
    "Keep the store": {
        "gc": Entry("store", "gc", "Delete what no layer, session or build needs."),
        "why-alive": Entry("store", "why_alive", "Say what keeps a path of the store from gc."),
        "verify": Entry("store", "verify", "Find every difference in the store, and repair it."),
    },
    "This program": {
        "completion": Entry("completion", "completion", "Print the completion script of a shell."),
        "man": Entry("man", "man", "Print the manual page."),
    },
}
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class LazyGroup(click.Group):
    """A group that knows its commands' names and summaries without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = getattr(import_module(f"envdsl.cli.{entry.module}"), entry.attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                width = max(map(len, COMMANDS)) + 2
                formatter.write_dl([(name.ljust(width), entry.summary) for name, entry in commands.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, 1)
            if not close or "Did you mean" in error.message:
                raise
            raise click.UsageError(f"{error.message} Did you mean '{close[0]}'?", ctx) from None


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="envdsl %(version)s")
def cli() -> None:
    """Declarative, content-addressed Python layers for sandboxes.

    Layers are declared in layers.d/*.layer, resolved once into lock files that live in git, built
    into an immutable store, and mounted read-only into a sandbox without a network.

    \b
    Exit status: 0 done, 1 the build or check failed, 2 usage, 3 refused by policy,
    4 environment (no bwrap, disk full, network), 75 a request has no outcome yet.
    """


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status; errors are rendered to stderr."""
    from envdsl.cli import output

    try:
        result = cli.main(list(arguments), prog_name="envdsl", standalone_mode=False)
    except EnvdslError as error:
        output.report(error.diagnostics)
        return int(error.exit_status)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        error.show(sys.stderr)
        return int(ExitStatus.USAGE)
    except (KeyboardInterrupt, click.Abort):
        output.message("interrupted; the store is whole, run the command again to go on")
        return 130
    except output.ReaderLeft:
        # `envdsl ls | head`: not an error, but nothing more can be written, not even by Python when it ends.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        output.report([output.of_os_error(error)])
        return int(ExitStatus.ENVIRONMENT)
    except Exception as error:
        output.report([output.of_defect(error)])
        return int(ExitStatus.FAILED)
    return _status(result)


def _status(result: Any) -> int:
    return result if isinstance(result, int) else 0
