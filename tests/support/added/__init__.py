"""The smallest verb, page and command: files that no folder of the collector has.

``tests/collector/test_added_files.py`` puts each where its kind is, in a copy of the package.
"""
