"""Past of networks from files: listing, reading with limits, checking against the node, storing."""
