"""What operators see of a deployment: its counts, its store, its processes.

Law of this package: a label is one of a closed set of our own words; nothing here knows a device,
a value, an address or an upload.
"""
