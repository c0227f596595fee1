{{ staged('chain', 'metadata_checks') }}
