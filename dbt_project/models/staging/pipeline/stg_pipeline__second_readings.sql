{{ staged('pipeline', 'second_readings') }}
