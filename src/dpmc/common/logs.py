"""Messages of the library, by Python's `logging` under "dpmc".

The handler below writes plain lines to standard error, also without any configuration, unless the root logger
has handlers, which get the messages, too. The commands always use it.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LOGGER = logging.getLogger("dpmc")


class _OnStandardError(logging.Handler):
    """Writes messages to what is standard error at that moment, unless the root logger has handlers."""

    always = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message as a line, a warning with "dpmc: warning: "."""
        if not self.always and logging.getLogger().handlers:
            return
        mark = "dpmc: warning: " if record.levelno >= logging.WARNING else ""
        try:
            sys.stderr.write(f"{mark}{record.getMessage()}\n")
            sys.stderr.flush()
        except Exception:  # as the handlers of the standard library
            self.handleError(record)


_HANDLER = _OnStandardError()
LOGGER.addHandler(_HANDLER)
if LOGGER.level == logging.NOTSET:
    LOGGER.setLevel(logging.INFO)


@contextmanager
def on_standard_error() -> Iterator[None]:
    """Show messages on standard error within this context, whatever other handlers there are."""
    before, _HANDLER.always = _HANDLER.always, True
    try:
        yield
    finally:
        _HANDLER.always = before


def say(lines: list[str]) -> None:
    """Log lines of a summary; those that begin with "dpmc: warning: " as warnings."""
    for line in lines:
        level = logging.WARNING if line.startswith("dpmc: warning: ") else logging.INFO
        LOGGER.log(level, "%s", line.removeprefix("dpmc: warning: "))
