"""A metric for Empathy-Eval: the arithmetic of ED, reconstructed, with stand-ins for its classifiers and weights fitted to ratings."""

from empathy_eval_ed_reconstruction.fitting import fitted_to
from empathy_eval_ed_reconstruction.metric import EdReconstruction
from empathy_eval_ed_reconstruction.readings import Readings, StandIn

__all__ = ["EdReconstruction", "Readings", "StandIn", "fitted_to"]
