"""Published versions, and the queries and caches over them."""
