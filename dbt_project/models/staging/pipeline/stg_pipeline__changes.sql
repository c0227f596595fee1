{{ staged('pipeline', 'changes') }}
