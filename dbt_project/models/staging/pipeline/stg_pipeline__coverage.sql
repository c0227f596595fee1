{{ staged('pipeline', 'coverage') }}
