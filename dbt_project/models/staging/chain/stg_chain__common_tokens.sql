{{ staged('chain', 'common_tokens') }}
