"""Asking price sources: markets, newest prices, history; one small module for each way of asking."""
