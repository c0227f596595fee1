{{ staged('prices', 'pair_routes') }}
