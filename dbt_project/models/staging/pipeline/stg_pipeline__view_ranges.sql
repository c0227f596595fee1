{{ staged('pipeline', 'view_ranges') }}
