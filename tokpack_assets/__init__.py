"""Dagster's view of tokpack: configuration in, asset graph out."""
