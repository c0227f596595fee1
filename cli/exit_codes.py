"""Exit codes that commands share; 2, for a wrong command line or setting, comes from click."""

EXIT_FAILED = 1
EXIT_NETWORK_FAILED = 3
EXIT_BUSY = 4
