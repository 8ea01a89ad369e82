"""Wordings of prompt templates, evolved by GEPA: `fairagent prompts optimize`.

GEPA (Agrawal et al. 2025, arXiv 2507.19457) keeps a pool of texts, asks a language model to improve one of them after
reading what it did, and keeps what scores better. Here a text is a template, what it did is the exposure of groups in
searches, and the models asked are fairagent's own, with its cache and budget.
"""

from fairagent.guests.gepa.optimizer import OptimizedTemplate, optimize
from fairagent.guests.gepa.plan import OptimizePlan, plan_optimization

__all__ = ["OptimizePlan", "OptimizedTemplate", "optimize", "plan_optimization"]
