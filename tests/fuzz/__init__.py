"""Requests that schemathesis makes from the OpenAPI document."""
