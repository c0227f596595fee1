"""From a running node to the HTTP answer."""
