"""The ledger: what of the AGF-TI paper is reproduced, from committed records."""
