"""Settled facts of a network that all shards share: given after collecting, and taken before the node is asked."""
