{{ staged('chain', 'token_metadata') }}
