"""AGF-TI, adversarial graph fusion with tensor imputation. Modules in reading order:

===================  ==================================================================
`state`              what Algorithm 2 is given, carries from round to round, and returns
`admm`               Algorithm 2: the loop, in the order of the paper
`steps`              its steps on all rows or on some, and their versions
`fusion`             Algorithm 1: view weights against fused graph
`propagation`        soft labels of samples and anchors
`tensor_nuclear`     tensor step of the paper, a Fourier transform along the rows
`graph_fourier`      ours: the same step in the Fourier basis of the graph of the samples
`alignment`          rotations of the anchors
`objective`          the augmented Lagrangian, term by term
`anchors`            anchors of the views; `anchor_count`: how many
`bipartite`          graphs between samples and anchors
`induction`          soft labels of new samples
`held_out`           soft labels of labelled samples without their label, for calibration
`explanation`        the labels and views that a soft label comes from
`released`           what the authors' code does differently
===================  ==================================================================
"""
