"""Nodes and services of these tests are those of the integration tests."""

from tests.integration.conftest import make_service, node

__all__ = ["make_service", "node"]
