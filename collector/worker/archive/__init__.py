"""The archive: folded payloads in Parquet files, and the tallies they must give again.

Law: a row is in a file or waits in the store if and only if its fold happened, and in one of them.
The fold itself keeps what it folds; a file appears whole, by a rename, under the numbers of the
folds in it; only then does the store forget them.  Whoever died in between finds the numbers again.
"""
