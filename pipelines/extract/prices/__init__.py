"""Clients of price sources: markets, newest prices, history; one small module for each kind of source."""
