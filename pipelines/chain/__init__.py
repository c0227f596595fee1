"""What the chain said: headers, rows, coverage, reorganisations and second readings."""
