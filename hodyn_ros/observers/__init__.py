"""What acts on a robot from outside, seen by its motion and its efforts alone."""

from hodyn_ros.observers.balance import Sensed
from hodyn_ros.observers.config import ObserverConfig
from hodyn_ros.observers.momentum_observer import ExternalEfforts, MomentumObserver

__all__ = ["ExternalEfforts", "MomentumObserver", "ObserverConfig", "Sensed"]
