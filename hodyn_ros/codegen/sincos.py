"""Sine and cosine of several angles at once, as LLVM code without calls into the mathematics library.

The angle is reduced by the nearest multiple of pi/2 (Cody & Waite, with pi/2 in three parts and fused
operations, exact below 2^20 rad), then minimax polynomials of fdlibm's kernels (Sun Microsystems, 1993) give
both functions to within one unit in the last place. Angles beyond the limit, infinities and NaN take the slow
way through the library.
"""

from __future__ import annotations

from hodyn_ros.codegen.literals import splat

_LIMIT = float(2**20)
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
_SINE = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
_COSINE = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)


def sincos_function(lanes: int) -> str:
    """Write `{sines, cosines} @sincos<lanes>(angles)` on vectors of `lanes` doubles."""
    vector, whole, flags = f"<{lanes} x double>", f"<{lanes} x i32>", f"<{lanes} x i1>"
    pair = f"{{{vector}, {vector}}}"
    lines = [
        f"define internal {pair} @sincos{lanes}({vector} %x) {{",
        f"%size = call {vector} @llvm.fabs.v{lanes}f64({vector} %x)",
        f"%small = fcmp ole {vector} %size, {splat(_LIMIT, lanes)}",
        f"%all_small = call i1 @llvm.vector.reduce.and.v{lanes}i1({flags} %small)",
        "br i1 %all_small, label %fast, label %slow",
        "fast:",
        f"%turns = fmul {vector} %x, {splat(0.6366197723675814, lanes)}",
        f"%k = call {vector} @llvm.rint.v{lanes}f64({vector} %turns)",
        f"%minus_k = fneg {vector} %k",
    ]
    rest = "%x"
    for i, part in enumerate(_HALF_PI):
        lines.append(_fused(lanes, f"%r{i}", "%minus_k", splat(part, lanes), rest))
        rest = f"%r{i}"
    lines += [
        f"%z = fmul {vector} {rest}, {rest}",
        *_polynomial(lanes, "s", _SINE),
        *_polynomial(lanes, "c", _COSINE),
        f"%rz = fmul {vector} {rest}, %z",
        _fused(lanes, "%sine", "%rz", "%s0", rest),
        f"%half = fmul {vector} %z, {splat(0.5, lanes)}",
        f"%w = fsub {vector} {splat(1.0, lanes)}, %half",
        f"%lost = fsub {vector} {splat(1.0, lanes)}, %w",
        f"%tail = fsub {vector} %lost, %half",
        f"%zz = fmul {vector} %z, %z",
        _fused(lanes, "%correction", "%zz", "%c0", "%tail"),
        f"%cosine = fadd {vector} %w, %correction",
        f"%quadrant = fptosi {vector} %k to {whole}",
        f"%odd = trunc {whole} %quadrant to {flags}",
        f"%s_plain = select {flags} %odd, {vector} %cosine, {vector} %sine",
        f"%c_plain = select {flags} %odd, {vector} %sine, {vector} %cosine",
        f"%s_bit = lshr {whole} %quadrant, {_whole(1, lanes)}",
        f"%s_turned = trunc {whole} %s_bit to {flags}",
        f"%c_turned = xor {flags} %s_turned, %odd",
        f"%s_negative = fneg {vector} %s_plain",
        f"%c_negative = fneg {vector} %c_plain",
        f"%s_final = select {flags} %s_turned, {vector} %s_negative, {vector} %s_plain",
        f"%c_final = select {flags} %c_turned, {vector} %c_negative, {vector} %c_plain",
        f"%fast0 = insertvalue {pair} poison, {vector} %s_final, 0",
        f"%fast1 = insertvalue {pair} %fast0, {vector} %c_final, 1",
        f"ret {pair} %fast1",
        "slow:",
        f"%slow_s = call {vector} @llvm.sin.v{lanes}f64({vector} %x)",
        f"%slow_c = call {vector} @llvm.cos.v{lanes}f64({vector} %x)",
        f"%slow0 = insertvalue {pair} poison, {vector} %slow_s, 0",
        f"%slow1 = insertvalue {pair} %slow0, {vector} %slow_c, 1",
        f"ret {pair} %slow1",
        "}",
        f"declare i1 @llvm.vector.reduce.and.v{lanes}i1({flags})",
        f"declare {vector} @llvm.fma.v{lanes}f64({vector}, {vector}, {vector})",
        *[f"declare {vector} @llvm.{f}.v{lanes}f64({vector})" for f in ("fabs", "rint", "sin", "cos")],
    ]
    return "\n".join(lines) + "\n"


def single_sincos_function(lanes: int) -> str:
    """Write the same on vectors of floats of four bytes, computed in doubles and rounded once."""
    wide, narrow = f"<{lanes} x double>", f"<{lanes} x float>"
    lines = [
        f"define internal {{{narrow}, {narrow}}} @sincos{lanes}({narrow} %x) {{",
        f"%wide = fpext {narrow} %x to {wide}",
        f"%both = call {{{wide}, {wide}}} @sincos_wide{lanes}({wide} %wide)",
    ]
    for i in range(2):
        lines.append(f"%part{i} = extractvalue {{{wide}, {wide}}} %both, {i}")
        lines.append(f"%rounded{i} = fptrunc {wide} %part{i} to {narrow}")
    lines += [
        f"%one = insertvalue {{{narrow}, {narrow}}} poison, {narrow} %rounded0, 0",
        f"%two = insertvalue {{{narrow}, {narrow}}} %one, {narrow} %rounded1, 1",
        f"ret {{{narrow}, {narrow}}} %two",
        "}",
    ]
    text = sincos_function(lanes).replace(f"@sincos{lanes}(", f"@sincos_wide{lanes}(")
    return text + "\n".join(lines) + "\n"


def _fused(lanes: int, result: str, a: str, b: str, c: str) -> str:
    vector = f"<{lanes} x double>"
    return f"{result} = call {vector} @llvm.fma.v{lanes}f64({vector} {a}, {vector} {b}, {vector} {c})"


def _polynomial(lanes: int, name: str, coefficients: tuple[float, ...]) -> list[str]:
    """Evaluate a polynomial in %z by Horner's scheme; the result is `%<name>0`."""
    value = splat(coefficients[-1], lanes)
    lines = []
    for i in reversed(range(len(coefficients) - 1)):
        lines.append(_fused(lanes, f"%{name}{i}", value, "%z", splat(coefficients[i], lanes)))
        value = f"%{name}{i}"
    return lines


def _whole(number: int, lanes: int) -> str:
    return "<" + ", ".join([f"i32 {number}"] * lanes) + ">"
