"""How accurate the methods are where it can be had in practice: experiments, and their page."""
