{{ staged('prices', 'pair_windows') }}
