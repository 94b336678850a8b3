"""Graphs for both methods: `nearest` rows, `neighbours` as graphs, labels `spreading` over them."""
