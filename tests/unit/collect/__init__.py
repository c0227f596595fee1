"""Unit tests of collection: arithmetic and decisions, without sources."""
