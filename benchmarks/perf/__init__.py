"""How fast AGF-TI is: against plain transcriptions of the paper, and against the machine.

python -m benchmarks.perf --set quick --out build/bench

Every script runs alone too, as ``python -m benchmarks.perf.rounds --help``; it prints its table
row by row, and writes its figures with the machine they come from as JSON.
"""
