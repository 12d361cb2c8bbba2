"""What the parameters of the guard name."""

from refusals import refused

from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.ros.parameters import guard_parameters


def test_every_bit_of_a_status_has_a_name() -> None:
    """Thrusts of propellers among them."""
    names = guard_parameters._STATUS
    assert guard_parameters._status(" ".join(names)) == Status(sum(bit.value for bit in Status))
    thrusts = Status.THRUST_LIMIT_EXCEEDED | Status.BASE_WRENCH_UNREACHED
    assert guard_parameters._status("thrust base_wrench") == thrusts
    assert guard_parameters._status(guard_parameters.NOTHING) == Status.OK
    refused(lambda: guard_parameters._status("thrust wind"), "'stop_on' names 'wind'; ... thrust_rate")
