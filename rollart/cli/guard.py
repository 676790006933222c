"""One line for what a user can mend: the command group that all verbs run in."""

import errno
import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from rollart.domain.errors import RollArtError

INTERRUPTED = 130
"""Exit code of a shell for a program that Ctrl-C ended."""


class GuardedGroup(TyperGroup):
    """Runs a command; what a user can mend becomes one `error:` line and exit code 1, a bug keeps its traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command of a parsed line."""
        try:
            return super().invoke(ctx)
        except RollArtError as error:
            raise _failed(str(error)) from error
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            raise _closed_pipe() from None
        except OSError as error:
            raise _failed(_os_text(error)) from error
        except MemoryError:
            raise _failed("out of memory; fewer trajectories or steps at once may fit") from None


def _failed(message: str) -> typer.Exit:
    typer.echo(f"error: {message}", err=True)
    return typer.Exit(1)


def _closed_pipe() -> typer.Exit:
    """The reader of our output has gone; the interpreter must not try to flush into it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return typer.Exit(1)


def _os_text(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    remedy = {errno.ENOSPC: "; free some space or choose another folder with -o"}.get(error.errno or 0, "")
    return f"{where}{error.strerror or error}{remedy}"
