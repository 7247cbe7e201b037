"""HTTP for web, relay and issuer: the server, its stop, health, heads and bodies; knows no store.

Law of this room: it knows no route of theirs, and neither a registry nor a web framework.
"""
