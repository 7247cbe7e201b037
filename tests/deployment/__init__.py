"""What operators apply: manifests, a chart, units, proxies, and ways back."""
