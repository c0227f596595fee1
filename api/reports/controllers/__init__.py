"""Controllers of reports."""
