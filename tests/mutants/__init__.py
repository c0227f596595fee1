"""Changes of single lines of the product, each of which one test of `make test` must notice."""
