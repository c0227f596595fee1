"""The reports in a real browser, embedded in a page of another origin."""
