{{ staged('pipeline', 'collection_failures') }}
