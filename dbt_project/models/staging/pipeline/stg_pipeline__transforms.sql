{{ staged('pipeline', 'transforms') }}
