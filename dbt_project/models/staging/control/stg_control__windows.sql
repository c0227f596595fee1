{{ staged('control', 'control_windows') }}
