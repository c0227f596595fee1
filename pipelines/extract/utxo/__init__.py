"""Networks whose transactions spend outputs: Bitcoin, Litecoin and others with the same blocks."""
