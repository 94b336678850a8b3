"""How fast the library is: `mend` times `MendClassifier`, the other scripts AGF-TI.

python -m benchmarks.perf.mend --data mnist70k_3view.npz --out build/bench-mend
python -m benchmarks.perf --set quick --out build/bench

AGF-TI is compared with plain transcriptions of the paper, and with what the machine can do.

Every script runs alone too, as ``python -m benchmarks.perf.rounds --help``; it prints its table
row by row, and writes its figures with the machine they come from as JSON.
"""
