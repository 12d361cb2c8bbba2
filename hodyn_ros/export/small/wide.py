"""Numbers of twice the digits on processors that compute with 24 bits: for small differences of large ones.

They are `double` where the processor has it, and else sums of two floats (T. J. Dekker, "A floating-point
technique for extending the available precision", Numer. Math. 18, 1971, with the sums of D. E. Knuth, The
Art of Computer Programming 2, section 4.2.2). The C is the same for both: `plus`, `minus`, `times` and
`turned` of the type `wide`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hodyn_ros.codegen.tracer import Graph, Operation
from hodyn_ros.export.c_text import number
from hodyn_ros.export.small.turns import TO_INTEGER
from hodyn_ros.export.straight_line import StraightLine, Tables

ERROR = 4e-9  # of a sine or cosine of an angle up to `turns.LARGEST`

# In y = r^2, 0 <= r <= pi/4: (sin(r) / r - 1) / y and (cos(r) - 1) / y, interpolated at Chebyshev's points
# (3e-11 and 3e-10), from the lowest power.
_SINE = -0.16666666663832764, 8.333331865959414e-3, -1.9840082012765537e-4, 2.7249314054698805e-6
_COSINE = -0.49999999968871981, 4.1666650548440198e-2, -1.3887583970817675e-3, 2.4463116702438325e-5


class WideLine(StraightLine):
    """Straight-line code of one function whose numbers are wide; inputs and outputs are not."""

    type = "wide"

    def __init__(
        self, graph: Graph, arguments: Sequence[str], outputs: Sequence[Any], tables: Tables
    ) -> None:
        self._turned = -1  # the angle of which `turn_of_angle` is, none yet
        super().__init__(graph, arguments, outputs, tables, most=math.inf)
        if self._turned >= 0:
            self.lines.insert(0, "  turn turn_of_angle;")

    def _prepared(self, graph: Graph, outputs: Sequence[Any]) -> tuple[Graph, dict[int, Any]]:
        return graph, {}

    def _read(self, element: str) -> str:
        return f"widened({element})"

    def _constant(self, value: float) -> str:
        return constant(value)

    def _shown(self, value: str) -> str:
        return f"narrowed({value})"

    def _ahead(self, node: int) -> list[str]:
        """Write sine and cosine of an angle at once, which are mostly needed one after the other."""
        operation, angle, _ = self._graph.nodes[node]
        if operation not in ("sin", "cos") or self._turned == angle:
            return []
        self._turned = angle
        return [f"  turn_of_angle = turned({self._value(angle)});"]

    def _made(self, operation: Operation, second: Any, operands: Sequence[str]) -> str:
        return _WRITTEN[operation](self._tables, second, *operands)


def constant(value: float) -> str:
    """Write a constant by the two floats whose sum is nearest."""
    high = float(np.float32(value))
    return f"wide_of({number(high)}, {number(float(np.float32(value - high)))})"


def _by(function: str) -> Callable[..., str]:
    return lambda tables, second, *operands: f"{function}({', '.join(operands)})"


# Of the operations of the tracer those that say how far loops are open.
_WRITTEN: dict[Operation, Callable[..., str]] = {
    "+": _by("plus"),
    "-": _by("minus"),
    "*": _by("times"),
    "sin": lambda tables, second, angle: "turn_of_angle.sine",
    "cos": lambda tables, second, angle: "turn_of_angle.cosine",
    "floor": lambda tables, second, a: f"widened(floor(narrowed({a})))",
    "piece": lambda tables, starts, x: tables.search(starts, f"narrowed({x})"),
    "entry": lambda tables, values, piece: f"widened({tables.name_of(values)}[{piece}])",
}


def wide_lines(macro: str) -> list[str]:
    """Write the types and what computes with them; `macro` is the prefix of that which chooses.

    `binary64` is `double` where all else becomes `float`.
    """
    (sine, *of_sine), (cosine, *of_cosine) = _SINE, _COSINE
    figures = {
        "PREFIX": macro,
        "QUARTERS": number(2.0 / math.pi),
        "QUARTER": constant(math.pi / 2.0),
        "HALF_OF_MANTISSA": number(2.0**12 + 1.0),
        "TO_INTEGER": number(TO_INTEGER),
        "LOW_SINE": constant(sine),
        "LOW_COSINE": constant(cosine),
        **{f"SINE{i}": number(x) for i, x in enumerate(of_sine)},
        **{f"COSINE{i}": number(x) for i, x in enumerate(of_cosine)},
    }
    text = re.sub(r"\b[A-Z]+[A-Z_0-9]*\b", lambda word: figures.get(word[0], word[0]), _TEXT)
    return text.replace("PREFIX_", f"{macro}_").splitlines()


_TEXT = """\
/* Numbers of twice the digits: double, by default where an ARM is known to have it, or pairs of float. */
#ifndef PREFIX_DOUBLE
#if defined(__ARM_FP) && ((__ARM_FP & 8) != 0)
#define PREFIX_DOUBLE 1
#else
#define PREFIX_DOUBLE 0
#endif
#endif

#if PREFIX_DOUBLE
typedef binary64 wide;

static inline wide wide_of(double high, double low)
{
  return (binary64)high + (binary64)low;
}

static inline wide widened(double a)
{
  return (binary64)a;
}

static inline double narrowed(wide a)
{
  return (double)a;
}

static inline wide plus(wide a, wide b)
{
  return a + b;
}

static inline wide minus(wide a, wide b)
{
  return a - b;
}

static inline wide times(wide a, wide b)
{
  return a * b;
}

static inline wide mixed(double p, wide a, double q, wide b)
{
  return ((binary64)p * a) + ((binary64)q * b);
}
#else
#ifdef __FAST_MATH__
#error "pairs of numbers lose their digits with -ffast-math"
#endif
typedef struct {
  double high;
  double low;
} wide;

static inline wide wide_of(double high, double low)
{
  const wide result = {high, low};
  return result;
}

static inline wide widened(double a)
{
  return wide_of(a, 0.0);
}

static inline double narrowed(wide a)
{
  return a.high + a.low;
}

static inline wide plus(wide a, wide b)
{
  const double high = a.high + b.high;
  const double of_b = high - a.high;
  const double of_a = high - of_b;
  return wide_of(high, ((a.high - of_a) + (b.high - of_b)) + (a.low + b.low));
}

static inline wide minus(wide a, wide b)
{
  return plus(a, wide_of(-b.high, -b.low));
}

static inline wide times(wide a, wide b)
{
  const double high = a.high * b.high;
#ifdef __FP_FAST_FMAF
  const double rest = fma(a.high, b.high, -high);
#else
  const double large_a = a.high * HALF_OF_MANTISSA;
  const double large_b = b.high * HALF_OF_MANTISSA;
  const double a1 = large_a - (large_a - a.high);
  const double b1 = large_b - (large_b - b.high);
  const double a2 = a.high - a1;
  const double b2 = b.high - b1;
  const double rest = ((((a1 * b1) - high) + (a1 * b2)) + (a2 * b1)) + (a2 * b2);
#endif
  return wide_of(high, rest + ((a.high * b.low) + (a.low * b.high)));
}

/* p a + q b, where one of p and q is 0 and the other 1 or -1 */
static inline wide mixed(double p, wide a, double q, wide b)
{
  return wide_of((p * a.high) + (q * b.high), (p * a.low) + (q * b.low));
}
#endif

typedef struct {
  wide sine;
  wide cosine;
} turn;

static inline double nearest_integer(double x)
{
  const double shifted = x + TO_INTEGER;
  return shifted - TO_INTEGER;
}

/* Sine and cosine: those of what whole quarter turns leave, or minus them, or the one for the other. */
static turn turned(wide angle)
{
  const double quarters = nearest_integer(QUARTERS * narrowed(angle));
  const double halves = nearest_integer((0.5 * quarters) - 0.25);
  const double odd = quarters - (2.0 * halves);
  const double sign = 1.0 - (2.0 * (halves - (2.0 * nearest_integer((0.5 * halves) - 0.25))));
  const wide rest = minus(angle, times(widened(quarters), QUARTER));
  const wide square = times(rest, rest);
  const double y = narrowed(square);
  const double of_sine = y * (SINE0 + (y * (SINE1 + (y * SINE2))));
  const double of_cosine = y * (COSINE0 + (y * (COSINE1 + (y * COSINE2))));
  const wide one = widened(1.0);
  const wide lowest_of_sine = plus(LOW_SINE, widened(of_sine));
  const wide lowest_of_cosine = plus(LOW_COSINE, widened(of_cosine));
  const wide sine = times(rest, plus(one, times(square, lowest_of_sine)));
  const wide cosine = plus(one, times(square, lowest_of_cosine));
  const double p = sign * (1.0 - odd);
  const double q = sign * odd;
  const turn result = {mixed(p, sine, q, cosine), mixed(p, cosine, -q, sine)};
  return result;
}"""
