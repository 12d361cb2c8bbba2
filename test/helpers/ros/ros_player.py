"""Play a bag as `ros2 bag play` does: the stored bytes of some topics, at the stored intervals.

    python test/helpers/ros/ros_player.py BAG [--clock] LISTENERS TOPIC...

With --clock, simulated time goes out on /clock: that of the recording, at each message and at 100 Hz. It says
when so many listeners hear each topic, waits for a line on its standard input, plays, and waits for another.
While it waits, simulated time stands at the beginning.
"""

import os
import sys
import threading
import time
from importlib import import_module
from typing import Any

import rclpy
from rosgraph_msgs.msg import Clock

from hodyn_ros.bags.reader import Bag
from hodyn_ros.ros.conversions.messages import time_message
from hodyn_ros.ros.streams.qos import stream_qos

LIFETIME = 180.0  # [s] after which this process ends, come what may


def main() -> None:
    """Play."""
    watchdog = threading.Timer(LIFETIME, os._exit, [3])
    watchdog.daemon = True
    watchdog.start()
    path, listeners, *topics = (argument for argument in sys.argv[1:] if argument != "--clock")
    rclpy.init(args=[])
    node = rclpy.create_node("player")
    clock = node.create_publisher(Clock, "/clock", stream_qos()) if "--clock" in sys.argv else None
    with Bag(path) as bag:
        publishers: dict[str, Any] = {}
        for topic in topics:
            package, _, kind = bag.topics[topic].type.split("/")
            message_type = getattr(import_module(f"{package}.msg"), kind)
            publishers[topic] = node.create_publisher(message_type, topic, stream_qos())
        messages = list(bag.messages(topics))
        waited_for = [*publishers.values(), *([clock] if clock else [])]
        while any(publisher.get_subscription_count() < int(listeners) for publisher in waited_for):
            time.sleep(0.01)
        print("player matched", flush=True)
        begin = messages[0].time
        told = threading.Event()
        threading.Thread(target=lambda: (sys.stdin.readline(), told.set()), daemon=True).start()
        while not told.wait(0.01):
            if clock is not None:
                tell(clock, begin)
        start = time.monotonic_ns()
        for message in messages:
            while (left := start + message.time - begin - time.monotonic_ns()) > 0:
                if clock is not None:
                    tell(clock, begin + time.monotonic_ns() - start)
                time.sleep(min(0.01, left * 1e-9))
            if clock is not None:
                tell(clock, message.time)
            publishers[message.topic].publish(message.data)
        print(f"played {len(messages)}", flush=True)
        sys.stdin.readline()  # stay until everything has been delivered
    rclpy.try_shutdown()


def tell(clock: Any, nanoseconds: int) -> None:
    """Publish simulated time."""
    clock.publish(Clock(clock=time_message(nanoseconds)))


if __name__ == "__main__":
    main()
