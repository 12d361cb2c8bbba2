"""What a publisher offers, as a bag keeps it."""

from __future__ import annotations

from rclpy.duration import Duration
from rclpy.qos import QoSProfile
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime


def offered(profile: QoSProfile) -> Qos:
    """Return a profile in the form of the library rosbags, for players that shall offer the same."""
    return Qos(
        QosHistory(profile.history.value),
        profile.depth,
        QosReliability(profile.reliability.value),
        QosDurability(profile.durability.value),
        _time(profile.deadline),
        _time(profile.lifespan),
        QosLiveliness(profile.liveliness.value),
        _time(profile.liveliness_lease_duration),
        profile.avoid_ros_namespace_conventions,
    )


def _time(duration: Duration) -> QosTime:
    return QosTime(*divmod(int(duration.nanoseconds), 1_000_000_000))
