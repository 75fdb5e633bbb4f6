"""The commands of the command line, by purpose; each is a function of the parsed options."""
