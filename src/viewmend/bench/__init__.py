"""Experiments: what to run is data, results are files, and every figure can be made again."""
