"""How long a round of AGF-TI takes, beside a plain transcription of the paper."""
