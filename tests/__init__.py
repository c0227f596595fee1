"""Tests, and the local chains they run on."""
