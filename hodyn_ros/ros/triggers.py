"""Services of type std_srvs/Trigger: something is done, and words say what, or why not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.service import Service
from std_srvs.srv import Trigger

from hodyn_ros.errors import HodynError


def serve_triggers(
    node: Node, group: CallbackGroup | None = None, **actions: Callable[[], str]
) -> Sequence[Service[Trigger.Request, Trigger.Response]]:
    """Offer `~/<name>` for each action, which returns what is answered; HodynError where it fails."""
    return [
        node.create_service(Trigger, f"~/{name}", partial(_answer, action), callback_group=group)
        for name, action in actions.items()
    ]


def _answer(
    action: Callable[[], str], request: Trigger.Request, response: Trigger.Response
) -> Trigger.Response:
    try:
        response.success, response.message = True, action()
    except HodynError as error:
        response.success, response.message = False, str(error)
    return response
