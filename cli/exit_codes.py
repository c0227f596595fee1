"""Exit codes that commands have in common; 2 is click's for a command line or a setting that is wrong."""

EXIT_FAILED = 1
EXIT_NETWORK_FAILED = 3
EXIT_BUSY = 4
