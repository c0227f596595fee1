{{ staged('chain', 'found_holders') }}
