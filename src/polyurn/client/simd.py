"""SIMD inside numba: `exp`, `log` and sums of four doubles at a time.

numba leaves short loops over components scalar, which costs the gather and scatter of
`e_step_kernels.py` a factor of two. `float64x4` is a value type that lives in one vector register on any
CPU that LLVM knows (it is split where registers are narrower). This module knows nothing of clients.
"""

import math
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

LANES = 4

_DOUBLE, _INT32, _INT64 = ir.DoubleType(), ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_BITS = ir.VectorType(_INT64, LANES)


class Float64x4(types.Type):
    """numba's type for four doubles."""

    def __init__(self) -> None:
        super().__init__(name="Float64x4")


float64x4 = Float64x4()


@register_model(Float64x4)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, _VECTOR)


@intrinsic
def load4(_, array, i):
    """The four elements of a flat float64 array that start at i; no bounds check."""

    def generate(context, builder, signature, args):
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        return builder.load(pointer, align=8)

    return float64x4(array, types.intp), generate


@intrinsic
def store4(_, array, i, vector):
    """array[i:i + 4] = vector; no bounds check."""

    def generate(context, builder, signature, args):
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        builder.store(args[2], pointer, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


@intrinsic
def fill4(_, x):
    """Four times the same number."""

    def generate(context, builder, signature, args):
        vector = ir.Constant(_VECTOR, ir.Undefined)
        for lane in range(LANES):
            vector = builder.insert_element(vector, args[0], ir.Constant(_INT32, lane))
        return vector

    return float64x4(types.float64), generate


def _lanewise(emit: Callable[..., Any], n_operands: int) -> Any:
    """An intrinsic that applies `emit(builder, *operands)` to whole vectors."""

    def generate(context, builder, signature, args):
        return emit(builder, *args)

    if n_operands == 1:
        return intrinsic(lambda _, a: (float64x4(a), generate))
    if n_operands == 2:
        return intrinsic(lambda _, a, b: (float64x4(a, b), generate))
    return intrinsic(lambda _, a, b, c: (float64x4(a, b, c), generate))


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def _fused(builder: Any, a: Any, b: Any, c: Any) -> Any:
    # fmuladd, not fma: one instruction where the CPU has it, two where it has not.
    signature = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    function = cgutils.get_or_insert_function(builder.module, signature, "llvm.fmuladd.v4f64")
    return builder.call(function, [a, b, c])


add4 = _lanewise(lambda builder, a, b: builder.fadd(a, b), 2)
sub4 = _lanewise(lambda builder, a, b: builder.fsub(a, b), 2)
mul4 = _lanewise(lambda builder, a, b: builder.fmul(a, b), 2)
div4 = _lanewise(lambda builder, a, b: builder.fdiv(a, b), 2)
max4 = _lanewise(_larger, 2)
fma4 = _lanewise(_fused, 3)


def _only_positive(builder: Any, weight: Any, x: Any) -> Any:
    zero = ir.Constant(_VECTOR, [0.0] * LANES)
    product = builder.fmul(weight, x)
    return builder.select(builder.fcmp_ordered(">", weight, zero), product, zero)


weighted4 = _lanewise(_only_positive, 2)  # weight * x, and 0 where the weight is 0, whatever x is


def _reduction(combine: Callable[[Any, Any, Any], Any]) -> Any:
    """An intrinsic that combines the four lanes into one double."""

    def generate(context, builder, signature, args):
        lanes = [builder.extract_element(args[0], ir.Constant(_INT32, i)) for i in range(LANES)]
        left, right = combine(builder, *lanes[:2]), combine(builder, *lanes[2:])
        return combine(builder, left, right)

    return intrinsic(lambda _, a: (types.float64(a), generate))


largest = _reduction(_larger)
total = _reduction(lambda builder, a, b: builder.fadd(a, b))


# exp(x) = 2^k exp(r) with |r| <= log(2)/2, where the Taylor series to r^13 is exact to half a unit
# in the last place. Adding 1.5 * 2^52 rounds to a whole number and leaves k in the low bits.
_LOG2_E = 1.0 / math.log(2.0)
_LOG_2_HIGH, _LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_ROUND = 6755399441055744.0
_UNDERFLOW = -708.0
_TAYLOR = tuple(1.0 / math.factorial(i) for i in range(13, -1, -1))


@njit(nogil=True, error_model="numpy")
def exp4(x):
    """Exp of four numbers that are not positive; exactly 0 below -708, and at -inf."""
    y = max4(x, fill4(_UNDERFLOW))
    rounded = fma4(y, fill4(_LOG2_E), fill4(_ROUND))
    k = sub4(rounded, fill4(_ROUND))
    r = sub4(sub4(y, mul4(k, fill4(_LOG_2_HIGH))), mul4(k, fill4(_LOG_2_LOW)))
    series = fill4(_TAYLOR[0])
    for coefficient in _TAYLOR[1:]:
        series = fma4(series, r, fill4(coefficient))
    return _times_power_of_two(series, rounded, x)


def _power(builder: Any, series: Any, rounded: Any, x: Any) -> Any:
    bias, shift = ir.Constant(_BITS, [1023] * LANES), ir.Constant(_BITS, [52] * LANES)
    exponent = builder.shl(builder.add(builder.bitcast(rounded, _BITS), bias), shift)
    value = builder.fmul(series, builder.bitcast(exponent, _VECTOR))
    in_range = builder.fcmp_ordered(">=", x, ir.Constant(_VECTOR, [_UNDERFLOW] * LANES))
    return builder.select(in_range, value, ir.Constant(_VECTOR, [0.0] * LANES))


_times_power_of_two = _lanewise(_power, 3)


# log(x) = k log(2) + log(m) with m between sqrt(1/2) and sqrt(2), where log(m) = 2 artanh(s) with
# s = (m - 1)/(m + 1); the series to s^23 is exact to half a unit in the last place. Numbers below the
# smallest normal one are scaled up by 2^54 first.
_ARTANH = tuple(2.0 / i for i in range(23, 0, -2))
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_SMALLEST, _SCALE, _SCALED_BY = 2.2250738585072014e-308, 2.0**54, 54.0


@njit(nogil=True, error_model="numpy")
def log4(x):
    """Log of four numbers that are not negative; -inf at 0."""
    k, m = _exponent(x), _mantissa(x)
    s = div4(sub4(m, fill4(1.0)), add4(m, fill4(1.0)))
    square = mul4(s, s)
    series = fill4(_ARTANH[0])
    for coefficient in _ARTANH[1:]:
        series = fma4(series, square, fill4(coefficient))
    small = fma4(series, s, mul4(k, fill4(_LOG_2_LOW)))
    return _or_minus_infinity(fma4(k, fill4(_LOG_2_HIGH), small), x)


def _scaled(builder: Any, x: Any) -> tuple[Any, Any]:
    """Scale x up where it is too small; return where that was."""
    low = builder.fcmp_ordered("<", x, ir.Constant(_VECTOR, [_SMALLEST] * LANES))
    return builder.select(low, builder.fmul(x, ir.Constant(_VECTOR, [_SCALE] * LANES)), x), low


def _whole_exponent(builder: Any, x: Any) -> tuple[Any, Any]:
    bits = builder.bitcast(x, _BITS)
    above = builder.sub(bits, ir.Constant(_BITS, [_SQRT_HALF_BITS] * LANES))
    return bits, builder.ashr(above, ir.Constant(_BITS, [52] * LANES))


def _exponent_of(builder: Any, x: Any) -> Any:
    scaled, low = _scaled(builder, x)
    k = builder.sitofp(_whole_exponent(builder, scaled)[1], _VECTOR)
    less = builder.fsub(k, ir.Constant(_VECTOR, [_SCALED_BY] * LANES))
    return builder.select(low, less, k)


def _mantissa_of(builder: Any, x: Any) -> Any:
    bits, k = _whole_exponent(builder, _scaled(builder, x)[0])
    shifted = builder.shl(k, ir.Constant(_BITS, [52] * LANES))
    return builder.bitcast(builder.sub(bits, shifted), _VECTOR)


def _at_zero(builder: Any, value: Any, x: Any) -> Any:
    some = builder.fcmp_ordered(">", x, ir.Constant(_VECTOR, [0.0] * LANES))
    return builder.select(some, value, ir.Constant(_VECTOR, [-math.inf] * LANES))


_exponent = _lanewise(_exponent_of, 1)
_mantissa = _lanewise(_mantissa_of, 1)
_or_minus_infinity = _lanewise(_at_zero, 2)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, i: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [i]), _VECTOR.as_pointer())
