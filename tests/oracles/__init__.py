"""Expected results by two other roads: the node itself, and the definitions in plain Python."""
