"""Public data sets of a test chain: their files, damaged copies of them, and an object store to serve them from."""
