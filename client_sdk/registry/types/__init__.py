"""The types of values, a file for each family.  It knows ``domain``, ``fields`` and ``metric``."""
