{{ staged('chain', 'token_creations') }}
