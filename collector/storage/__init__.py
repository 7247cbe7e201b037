"""What the collector asks of its store, and the values that cross this border.

Law of this layer: nothing here imports redis, numpy or flask; only the implementations do.
"""
