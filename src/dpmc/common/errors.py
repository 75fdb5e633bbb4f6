"""The error type for users' mistakes: its message is one line naming the value and the rule it breaks."""


class DpmcError(ValueError):
    """A mistake in a user's input; the command line prints its message without a traceback.

    A ValueError, so that a program that handles wrong values handles it too.
    """
