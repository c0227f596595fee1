"""Routes, one module per section of the interface: signature, docstring, a call."""
