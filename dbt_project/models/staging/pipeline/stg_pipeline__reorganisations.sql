{{ staged('pipeline', 'reorganisations') }}
