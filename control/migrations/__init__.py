"""Schema migrations of the control store, run by `control.store`."""
