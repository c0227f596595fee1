{{ staged('pipeline', 'data_files') }}
