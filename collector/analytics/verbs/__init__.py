"""The verbs, one file each: what can be asked.  A file holds one ``VERB`` and nothing lists it."""
