"""Mathematics that both methods and the baselines use, and that belongs to none of them.

===================  ==================================================================
`simplex`            projections on the probability simplex
`linear_systems`     conjugate gradients for many right-hand sides
`class_shares`       classes in given shares
`content_order`      an order of the samples by their content
`scaling`            rows of a view at one scale
`held_out`           which labels are left out to check predictions
`calibration`        one temperature, fitted to them
===================  ==================================================================
"""
