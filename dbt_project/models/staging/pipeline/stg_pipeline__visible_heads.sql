{{ staged('pipeline', 'visible_heads') }}
