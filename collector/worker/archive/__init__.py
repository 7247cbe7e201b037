"""The archive: folded payloads in Parquet files, and the tallies they must give again.

Law: a row is in a file or waits in the store if and only if its fold happened, and never in both.
The fold itself keeps what it folds; a file appears whole, by a rename, under the numbers of the
folds in it; only then does the store forget them.  A process that dies in between finds the
numbers again.
"""
