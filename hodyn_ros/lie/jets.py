"""Truncated Taylor arithmetic on NumPy arrays.

A *jet* is the stack `f[k] = f^(k) / k!` of the Taylor coefficients of a function of time, k = 0 ... K on axis
0; the other axes are free and broadcast as usual. With coefficients instead of derivatives the product rule
is a plain convolution, and composition needs no Faa di Bruno polynomials. Source: Griewank & Walther,
Evaluating Derivatives, 2nd ed. (SIAM 2008), chapter 13.

But for `sin_cos`, jets may also hold scalars of the tracer (`hodyn_ros.codegen.tracer`, dtype object):
what is written for numbers can then be compiled.
"""

from __future__ import annotations

from math import factorial

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array as Array
from hodyn_ros.errors import InputError


def to_taylor(derivatives: Array) -> Array:
    """Return the Taylor coefficients `f^(k) / k!` (K+1, ...) of the derivatives `f^(k)` (K+1, ...).

    >>> to_taylor(np.array([1.0, 1.0, 1.0]))
    array([1. , 1. , 0.5])
    """
    return derivatives / _factorials(derivatives)


def to_derivatives(taylor: Array) -> Array:
    """Return the derivatives `f^(k)` (K+1, ...) of the Taylor coefficients `f^(k) / k!` (K+1, ...).

    >>> to_derivatives(np.array([0.0, 0.0, 1.0]))
    array([0., 0., 2.])
    """
    return taylor * _factorials(taylor)


def multiply(a: Array, b: Array) -> Array:
    """Return the jet of the product of two functions, the Cauchy product `sum_l a[l] b[k-l]`.

    >>> multiply(np.array([1.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0]))  # (1 + t)^2
    array([1., 2., 1.])
    """
    _check_alike(a, b)
    return np.stack([(a[: k + 1] * b[k::-1]).sum(axis=0) for k in range(len(a))])


def compose(outer: Array, inner: Array) -> Array:
    """Return the jet of `f(g(t))`.

    `outer` (K+1, ...) is the jet of f at the point `inner[0]`, `inner` (K+1, ...) that of g. This is the
    chain rule of every order up to K, by Horner's scheme.

    >>> compose(np.array([1.0, 1.0, 0.5]), np.array([0.0, 0.0, 1.0]))  # exp(t^2)
    array([1., 0., 1.])
    """
    _check_alike(outer, inner)
    outer = np.broadcast_to(outer, np.broadcast_shapes(outer.shape, inner.shape))
    # g(t) - g(0) divided by t: a factor t per step of Horner's scheme only shifts the coefficients by one
    quotient = inner[1:]
    result = outer[-1:]
    for k in range(len(outer) - 2, -1, -1):
        result = np.concatenate([outer[k : k + 1], multiply(result, quotient[: len(result)])])
    return np.array(result)


def sin_cos(a: Array) -> tuple[Array, Array]:
    """Return the jets of `sin f` and `cos f` from the jet of f, `s' = f' c` and `c' = -f' s` order by order.

    >>> sin_cos(np.array([0.0, 1.0, 0.0, 0.0]))[0].round(6)  # sin t
    array([ 0.      ,  1.      ,  0.      , -0.166667])
    """
    a = np.asarray(a, dtype=np.float64)
    s, c = np.empty_like(a), np.empty_like(a)
    s[0], c[0] = np.sin(a[0]), np.cos(a[0])
    rate = a * _column(np.arange(len(a)), a.ndim)
    for k in range(1, len(a)):
        s[k] = (rate[1 : k + 1] * c[k - 1 :: -1]).sum(axis=0) / k
        c[k] = -(rate[1 : k + 1] * s[k - 1 :: -1]).sum(axis=0) / k
    return s, c


def power(a: Array, exponent: float) -> Array:
    """Return the jet of `f^exponent`, by `f p' = exponent f' p` order by order; f must be positive.

    Griewank & Walther, table 13.2.

    >>> power(np.array([4.0, 4.0, 1.0]), 0.5)  # sqrt((2 + t)^2)
    array([2., 1., 0.])
    """
    a = np.asarray(a)
    if a.dtype != object and not (a[0] > 0.0).all():
        raise InputError(f"a power of a jet needs a function above zero, found {np.min(a[0])}")
    p = np.empty_like(a, dtype=np.result_type(a, np.float64))
    p[0] = a[0] ** exponent
    inverse = 1.0 / a[0]
    for k in range(1, len(a)):
        weights = _column(((exponent + 1.0) * np.arange(1, k + 1) - k) / k, a.ndim)
        p[k] = (weights * a[1 : k + 1] * p[k - 1 :: -1]).sum(axis=0) * inverse
    return p


def derivative(a: Array, times: int = 1) -> Array:
    """Return the jet of the time derivative of f, one coefficient shorter, as many `times`.

    >>> derivative(np.array([1.0, 2.0, 3.0]))
    array([2., 6.])
    """
    for _ in range(times):
        a = a[1:] * _column(np.arange(1, len(a)), np.ndim(a))
    return a


def _factorials(stack: Array) -> Array:
    return _column(np.array([float(factorial(k)) for k in range(len(stack))]), np.ndim(stack))


def _column(values: NDArray[np.generic], ndim: int) -> Array:
    return np.asarray(values, dtype=np.float64).reshape((-1,) + (1,) * (ndim - 1))


def _check_alike(a: Array, b: Array) -> None:
    if len(a) != len(b):
        raise InputError(f"two jets of the same order are needed, found {len(a)} and {len(b)} coefficients")
    if np.ndim(a) != np.ndim(b):
        raise InputError(f"two jets with as many axes are needed, found shapes {a.shape} and {b.shape}")
