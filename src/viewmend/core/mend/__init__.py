"""Mend: read `recipe` first, then `geometry` (all without labels) and `induction` (new samples)."""

from viewmend.core.mend.recipe import Stage, StageRecord

__all__ = ["Stage", "StageRecord"]
