"""What is shared by the subcommands: log, exit codes, progress, signals."""
