"""What the commands of the command line do: by purpose, each a function of the parsed options."""
