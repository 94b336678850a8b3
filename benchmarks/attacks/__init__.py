"""Attacks on the library, one module each: files that lie, numbers that overflow, kills, signals.

`benchmarks/hostile.py` runs thousands of cases of them, ``tests/hostile`` a few of each.
"""
