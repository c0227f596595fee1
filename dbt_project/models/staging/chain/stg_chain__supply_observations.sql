{{ staged('chain', 'supply_observations') }}
