"""AGF-TI: Algorithm 2 in `admm`, Algorithm 1 in `fusion`, the released code in `released`."""
