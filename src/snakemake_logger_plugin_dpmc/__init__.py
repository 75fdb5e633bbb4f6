"""Output of a pipeline run: progress and time left, warnings, failed jobs with the ends of their logs.

A logger plugin of Snakemake (`snakemake --logger dpmc`), used by workflow/run.py and by the profile of
`dpmc init`. Snakemake's own `--quiet rules` shows no time left, and hides which job failed and its log.
"""

import logging
import sys
import time
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

EVERY = 10.0  #: seconds between two lines of progress; on a terminal one line is rewritten
WIDTH = 300  #: largest number of characters of a line, since commands list all their files
LAST_LINES = 15  #: lines shown of the log of a failed job


class LogHandler(LogHandlerBase):
    """Writes to standard error; with Snakemake's `--quiet` without progress.

    Snakemake's own log is shown instead in a dry run, and if an option asks for more of it.
    """

    writes_to_file = False
    has_filter = True  # so that Snakemake adds none; `emit` filters
    has_formatter = False  # Snakemake's own
    needs_rulegraph = False

    def __post_init__(self) -> None:
        asked = self.common_settings
        self.silent = asked.dryrun or asked.verbose or asked.printshellcmds or asked.debug_dag
        self.began = 0.0  # when the first job began
        self.shown = 0.0
        self.live = sys.stderr.isatty()
        self.failed: set[str] = set()

    @property
    def writes_to_stream(self) -> bool:
        """Whether this handler takes the place of Snakemake's own."""
        return not self.silent

    def emit(self, record: logging.LogRecord) -> None:
        """Show progress, failed jobs, warnings, errors, and the message that nothing is to be done."""
        event, fields = getattr(record, "event", None), vars(record)
        if self.silent:
            return
        if event == LogEvent.JOB_INFO:
            self.began = self.began or time.monotonic()
        elif event == LogEvent.PROGRESS:
            if "all" not in map(str, self.common_settings.quiet or ()):  # the profile is quiet about reasons
                self._progress(fields["done"], fields["total"])
        elif event == LogEvent.JOB_ERROR:
            self._failure(fields["rule_name"], fields["output"] or [""], fields["log"] or [])
        elif record.levelno >= logging.WARNING or "Nothing to be done" in record.getMessage():
            lines = self.format(record).splitlines()
            self._say("\n".join(line if len(line) <= WIDTH else f"{line[:WIDTH]}…" for line in lines))

    def _progress(self, done: int, total: int) -> None:
        now = time.monotonic()
        if not self.live and now - self.shown < EVERY and done < total:
            return
        self.shown, spent = now, now - self.began
        left = spent * (total - done) / max(done, 1)
        text = f"{done} of {total} jobs ({done / max(total, 1):.0%}), {spent:.0f} s, about {left:.0f} s left"
        self._say(text, end="" if self.live and done < total else "\n")

    def _failure(self, rule: str, outputs: list[str], logs: list[str]) -> None:
        """Show a failed job and the end of its log, once, since Snakemake reports it several times."""
        if outputs[0] in self.failed:
            return
        self.failed.add(outputs[0])
        more = f" and {len(outputs) - 1} more" if len(outputs) > 1 else ""
        self._say(f"dpmc: failed: rule {rule}: {outputs[0]}{more}")
        for file in filter(Path.exists, map(Path, logs)):
            lines = file.read_text(errors="replace").splitlines()
            self._say("\n".join([f"  {file}:", *(f"    {line}" for line in lines[-LAST_LINES:])]))

    def _say(self, text: str, end: str = "\n") -> None:
        print(("\r\033[K" if self.live else "") + text, end=end, file=sys.stderr, flush=True)
