"""A metric for Empathy-Eval: 36 rules over sentiment and emotion, a likelihood, and the relevance of a reply."""

from empathy_eval_emotion_rules.metric import EmotionRules

__all__ = ["EmotionRules"]
