"""Mend: the recipe in `recipe`, what it knows without labels in `geometry`, new samples in `induction`."""

from viewmend.core.mend.recipe import Stage, StageRecord

__all__ = ["Stage", "StageRecord"]
