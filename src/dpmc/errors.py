"""The one error type for a user's mistake: one line that names the value and the rule it breaks."""


class DpmcError(Exception):
    """A mistake in a user's input; the command line prints its message without a traceback."""
