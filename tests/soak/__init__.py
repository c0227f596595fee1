"""The whole service under every kind of work for minutes: no error, and no growth of memory or handles."""
