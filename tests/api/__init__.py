"""Tests of the HTTP service, with a handmade control store and serving file."""
