"""Devices and what surrounds them: clocks, disks, registries, and servers that answer them."""
