"""Arrays and kernels: the only package that depends on which array library is in use.

`agnostic` defines every kernel and `dispatch` chooses its implementation: `numba_*` and
`numpy_products` on the CPU, `torch_*` and `triton_*` on GPUs.
"""
