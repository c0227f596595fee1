{{ staged('pipeline', 'lost_readings') }}
