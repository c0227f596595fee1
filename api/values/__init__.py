"""What quantities are worth, and explanations of the figures."""
