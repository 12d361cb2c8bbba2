"""Learning over repetitions: from recordings of one motion to efforts that correct its feedforward."""

from hodyn_ros.learning.config import LearningConfig, Uncertainty
from hodyn_ros.learning.correction import Correction
from hodyn_ros.learning.files import read_correction, write_correction
from hodyn_ros.learning.learn import Learned, Learner, Step

__all__ = [
    "Correction",
    "Learned",
    "Learner",
    "LearningConfig",
    "Step",
    "Uncertainty",
    "read_correction",
    "write_correction",
]
