"""Chunks of a policy on arms whose drives take position, velocity, gains and torque, without ROS."""

from hodyn_ros.streaming.chunk_bounds import ChunkBounds
from hodyn_ros.streaming.chunk_check import ChunkCheck, ChunkError, ChunkFault
from hodyn_ros.streaming.chunk_executor import ChunkExecutor, DriveCommand, ExecutorConfig

__all__ = [
    "ChunkBounds",
    "ChunkCheck",
    "ChunkError",
    "ChunkExecutor",
    "ChunkFault",
    "DriveCommand",
    "ExecutorConfig",
]
