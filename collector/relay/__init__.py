"""The relay: carries sealed messages to a gateway, which so sees no device's address.

Law of this package: it knows messages as bytes that it cannot open.  It imports no storage, no
registry and no web framework, writes nothing to disk, and no log line has an address or a message.
"""
