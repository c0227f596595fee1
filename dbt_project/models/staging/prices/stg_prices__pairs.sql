{{ staged('prices', 'control_price_pairs') }}
