"""A publisher and a subscriber as processes of their own, for the tests of dynamics_node.

    ros_stream.py publish COUNT RATE FILE    desired motions; stamps sent go to FILE (.npy)
    ros_stream.py collect FILE               feedforward; stamps and arrays received go to FILE (.npz)

The stamps are readings of the machine's monotonic clock, so the difference to the reading at the reception is
the way through the node. Both write a line when their topics are matched. The publisher then sends samples
slowly until it is told `go`, counts from there, and so nothing has to be lost while the processes discover
each other.
"""

import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
import rclpy
from numpy.typing import NDArray
from rclpy.executors import ExternalShutdownException

from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.ros.conversions.messages import nanoseconds, time_message, write_desired_motion
from hodyn_ros.ros.streams.qos import stream_qos

JOINTS = [f"panda_joint{i}" for i in range(1, 8)]
ORDERS = 5
LIFETIME = 180.0  # [s] after which these processes end, come what may


def motion(nanosecond: int) -> NDArray[np.float64]:
    """Return the desired motion (5, 7) at a stamp: a sine in each joint, about the middle of its range."""
    t = (nanosecond % 1_000_000_000_000) * 1e-9
    middle = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.8, 0.0])
    omega = 1.0 + 0.1 * np.arange(7)
    phase = omega * t + 0.3 * np.arange(7)
    stack = np.array([0.2 * omega**k * np.sin(phase + 0.5 * np.pi * k) for k in range(ORDERS)])
    stack[0] += middle
    return stack


def held_up(stamps: NDArray[np.int64]) -> bool:
    """Return whether the publisher itself could not keep its rate, on a machine busy with something else."""
    return bool(np.diff(stamps).max() > 20_000_000)


def publish(count: int, rate: float, file: Path) -> None:
    """Publish desired motions; the joints are named from last to first."""
    node = rclpy.create_node("test_publisher")
    publisher = node.create_publisher(DesiredMotion, "desired_motion", stream_qos())
    told = threading.Event()

    def listen() -> None:
        sys.stdin.readline()
        told.set()

    threading.Thread(target=listen, daemon=True).start()
    names = JOINTS[::-1]
    stamps = []

    def send() -> int:
        stamp = time.monotonic_ns()
        stack = np.ascontiguousarray(motion(stamp)[:, ::-1])
        publisher.publish(write_desired_motion(names, time_message(stamp), stack))
        return stamp

    while publisher.get_subscription_count() < 1:
        time.sleep(0.01)
    print("publisher matched", flush=True)
    while not told.wait(0.02):
        send()
    start = due = time.monotonic()
    for _ in range(count):
        time.sleep(max(0.0, due - time.monotonic()))
        stamps.append(send())
        due = max(due + 1.0 / rate, time.monotonic())  # a burst after a hold-up would not fit into queues
    took = time.monotonic() - start
    np.save(file, np.array(stamps))
    print(f"published {count} in {took:.3f} s", flush=True)
    sys.stdin.readline()  # stay until everything has been delivered


def collect(file: Path) -> None:
    """Collect feedforward until the one with the stamp that is told on the standard input."""
    node = rclpy.create_node("test_subscriber")
    stamps: list[int] = []
    arrived: list[int] = []
    efforts: list[object] = []
    motor_efforts: list[object] = []
    computation: list[float] = []

    def take(msg: FeedforwardTorque) -> None:
        arrived.append(time.monotonic_ns())
        if not stamps:
            print("subscriber matched", flush=True)
        stamps.append(nanoseconds(msg.header.stamp))
        efforts.append(msg.efforts)
        motor_efforts.append(msg.motor_efforts)
        computation.append(msg.computation_time)

    subscription = node.create_subscription(FeedforwardTorque, "feedforward_torque", take, stream_qos())
    last: list[int] = []
    threading.Thread(target=lambda: last.append(int(sys.stdin.readline())), daemon=True).start()
    executor = rclpy.executors.SingleThreadedExecutor()
    executor.add_node(node)
    end = time.monotonic() + LIFETIME
    while time.monotonic() < end and not (last and stamps and stamps[-1] >= last[0]):
        executor.spin_once(timeout_sec=0.1)
    node.destroy_subscription(subscription)
    np.savez(
        file,
        stamps=np.array(stamps),
        arrived=np.array(arrived),
        efforts=np.array(efforts),
        motor_efforts=np.array(motor_efforts),
        computation=np.array(computation),
    )
    print("collected", flush=True)


def main() -> None:
    """Run one of the two."""
    watchdog = threading.Timer(LIFETIME, os._exit, [3])
    watchdog.daemon = True
    watchdog.start()
    rclpy.init()
    try:
        if sys.argv[1] == "publish":
            publish(int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
        else:
            collect(Path(sys.argv[2]))
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        rclpy.try_shutdown()


if __name__ == "__main__":
    main()
