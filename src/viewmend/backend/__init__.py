"""Arrays and kernels: the only place that knows which array library is in use."""
