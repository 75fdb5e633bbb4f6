"""The error type for users' mistakes: its message is one line naming the value and the rule it breaks."""


class DpmcError(ValueError):
    """A ValueError for a mistake in a user's input; the command line prints it without a traceback."""
