"""The error type for users' mistakes: its message is one line naming the value and the rule it breaks."""


class DpmcError(ValueError):
    """A ValueError for what a user can cure; the command line prints it in one line.

    Only `--verbose` adds the traceback.
    """
