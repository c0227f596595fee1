{{ staged('pipeline', 'publications') }}
