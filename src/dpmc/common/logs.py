"""Messages of the library, by Python's `logging` under "dpmc".

The handler below writes plain lines to standard error, also without any configuration, unless the root logger
has handlers, which get the messages, too. The commands always use it.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LOGGER = logging.getLogger("dpmc")


class _OnStandardError(logging.StreamHandler[Any]):
    """Writes messages to what is standard error at that moment, warnings with "dpmc: warning: "."""

    always = False

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        """Return standard error."""
        return sys.stderr

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to show the message: unless the root logger has handlers."""
        return self.always or not logging.getLogger().handlers

    def format(self, record: logging.LogRecord) -> str:
        """Return the message as a line."""
        return ("dpmc: warning: " if record.levelno >= logging.WARNING else "") + record.getMessage()


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
