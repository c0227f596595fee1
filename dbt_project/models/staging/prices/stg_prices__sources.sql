{{ staged('prices', 'control_price_sources') }}
