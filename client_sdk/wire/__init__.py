"""What devices, collector, relay and issuer say to one another, byte for byte."""
