"""The command line: `main` dispatches, `options` declares; other modules are the commands, by purpose."""
