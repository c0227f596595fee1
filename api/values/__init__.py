"""Values of quantities, and explanations of the figures."""
