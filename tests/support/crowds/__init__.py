"""Reports of many devices, and questions about them."""
