"""What students are taught by: how far a score is from the teacher's, and how far the better of two texts is from leading by a margin.

"EmpathyScore": ``L_reg = (S - S^T)^2``, ``L_rank = max(0, m - S(R+) + S(R-))`` for two replies to the same context, and
``L = L_reg + lambda * L_rank``, summed over flow and content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def regression(scores: Tensor, targets: Tensor) -> Tensor:
    """The squared distance of each score to what the teacher says."""
    return (scores - targets) ** 2


def ranking(winners: Tensor, losers: Tensor, margin: float) -> Tensor:
    """By pair what the winner lacks to lead by the margin; 0, and nothing to learn, where it does."""
    return (margin - winners + losers).clamp(min=0)


def combined(regressed: Tensor, ranked: Tensor, weight: float) -> Tensor:
    """Both losses as one."""
    return regressed + weight * ranked
