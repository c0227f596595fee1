"""Network definitions and the address codecs of their families."""
