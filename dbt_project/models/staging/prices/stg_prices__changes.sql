{{ staged('prices', 'price_changes') }}
