"""What an exported robot offers: names and shapes of its functions' arguments."""

from __future__ import annotations

from dataclasses import dataclass

from hodyn_ros.engine.kernel import Shape
from hodyn_ros.export.motors import Motors
from hodyn_ros.model.tree import TreeModel


@dataclass(frozen=True, eq=False)
class Interface:
    """The functions of one robot at one order, all starting with `name`."""

    name: str
    order: int
    model: TreeModel
    motors: Motors | None

    @property
    def macro(self) -> str:
        """The name as macros start with it."""
        return self.name.upper()

    @property
    def inputs(self) -> dict[str, Shape]:
        """Shapes of what the inverse dynamics takes."""
        shapes = {"q": (self.order + 3, self.model.n_joints)}
        if self.model.floating_base:
            shapes |= {"pose": (4, 4), "twists": (self.order + 2, 6)}
        return shapes

    @property
    def results(self) -> dict[str, Shape]:
        """Shapes of what the inverse dynamics gives."""
        shapes = {"base_wrench": (self.order + 1, 6)} if self.model.floating_base else {}
        return {**shapes, "tau": (self.order + 1, self.model.n_joints)}

    @property
    def parameters(self) -> str:
        """The parameters of the inverse dynamics as C declares them."""
        inputs = [f"const double {name}[{rows * columns}]" for name, (rows, columns) in self.inputs.items()]
        results = [f"double {name}[{rows * columns}]" for name, (rows, columns) in self.results.items()]
        return ", ".join([*inputs, *results])

    @property
    def calls(self) -> dict[str, list[str]]:
        """The names of all functions with those of their arrays, in the order in which one feeds the next."""
        calls = {f"{self.name}_inverse_dynamics": [*self.inputs, *self.results]}
        if self.motors is not None:
            calls[f"{self.name}_motor_feedforward"] = ["q", "tau", "position", "effort"]
        return calls
