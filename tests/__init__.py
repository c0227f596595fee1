"""Tests, and the local chains they run on."""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
