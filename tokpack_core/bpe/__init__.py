"""Byte-level BPE of our own: pretokenization, pretoken counts, merges, and an exact encoder."""
