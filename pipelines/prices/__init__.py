"""Collection of prices."""
