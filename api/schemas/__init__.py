"""What leaves the process: msgspec structs, camelCase in JSON, each field described."""
