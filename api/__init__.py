"""The HTTP service: configuration through the control store, analytics from published marts."""
