{{ staged('pipeline', 'unread_units') }}
