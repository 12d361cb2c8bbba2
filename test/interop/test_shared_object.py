"""Shared objects made without a linker: code, constants, calls to elsewhere, and what is refused."""

import ctypes
import math
import platform
from pathlib import Path

import pytest
from refusals import refused

from hodyn_ros.codegen.llvm import relocatable
from hodyn_ros.interop.elf import shared_object

pytestmark = pytest.mark.skipif(
    (platform.machine(), platform.system()) != ("x86_64", "Linux"), reason="of x86-64 and Linux"
)
CODE = """
@numbers = private unnamed_addr constant [3 x i64] [i64 5, i64 6, i64 7]
@count = internal global i64 0
declare double @sin(double)
declare double @hypot(double, double)
define double @curve(double %x) {
  %y = call double @sin(double %x)
  %z = call double @hypot(double %y, double 4.0)
  ret double %z
}
define i64 @number(i64 %i) {
  %p = getelementptr i64, ptr @numbers, i64 %i
  %v = load i64, ptr %p
  ret i64 %v
}
define i64 @next() {
  %v = load i64, ptr @count
  %w = add i64 %v, 1
  store i64 %w, ptr @count
  ret i64 %w
}
"""


def test_functions_find_constants_variables_and_each_other(tmp_path: Path) -> None:
    path = tmp_path / "small.so"
    path.write_bytes(shared_object(relocatable(CODE), ["curve", "number", "next"]))
    loaded = ctypes.CDLL(str(path))
    loaded.curve.restype, loaded.curve.argtypes = ctypes.c_double, [ctypes.c_double]
    assert loaded.curve(0.3) == math.hypot(math.sin(0.3), 4.0)
    assert [loaded.number(i) for i in range(3)] == [5, 6, 7]
    assert [loaded.next(), loaded.next()] == [1, 2]


def test_code_with_absolute_places_is_refused() -> None:
    code = "@x = internal global i64 3\n@y = global ptr @x\ndefine ptr @f() {\nret ptr @y\n}\n"
    refused(lambda: shared_object(relocatable(code), ["f"]), "relocation 1 of ... is not", ValueError)
