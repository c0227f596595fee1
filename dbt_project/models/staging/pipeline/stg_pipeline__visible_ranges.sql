{{ staged('pipeline', 'visible_ranges') }}
