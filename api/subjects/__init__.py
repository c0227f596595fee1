"""What tokens and wallets have alike: their lookup, moments, intervals, coverage."""
