{{ staged('prices', 'control_price_reviews') }}
