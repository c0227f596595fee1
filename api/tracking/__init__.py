"""One token or one wallet: detail, changes, tracking, history requests."""
