"""Controllers of prices."""
