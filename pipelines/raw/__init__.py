"""Access to the raw tables: opening, transactions, statements, builds, usage."""
