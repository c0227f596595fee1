{{ staged('chain', 'balance_observations') }}
