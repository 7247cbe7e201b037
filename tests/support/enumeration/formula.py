"""Textbook formulas as text, so that a vector file can hold its own independent reference.

A formula is an expression over numbers, the names it is given, + - * / // % **, exp, ln and sqrt,
computed with ``decimal`` at 60 digits; // and % are meant for positive numbers.  It shares no code
with the mechanisms.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Final

CONTEXT: Final = Context(prec=60)

_OPERATORS: Final = {
    ast.Add: CONTEXT.add,
    ast.Sub: CONTEXT.subtract,
    ast.Mult: CONTEXT.multiply,
    ast.Div: CONTEXT.divide,
    ast.FloorDiv: CONTEXT.divide_int,
    ast.Mod: CONTEXT.remainder,
    ast.Pow: CONTEXT.power,
}
_FUNCTIONS: Final = {"exp": CONTEXT.exp, "ln": CONTEXT.ln, "sqrt": CONTEXT.sqrt}


def evaluate(formula: str, names: Mapping[str, Decimal]) -> Decimal:
    """Return the value of *formula*.

    Raises: ValueError: it holds anything but arithmetic over *names*.
    """
    return _value(ast.parse(formula, mode="eval").body, names)


def digits(number: Decimal, count: int = 30) -> str:
    """Return *number* to *count* significant digits."""
    return str(number.normalize(Context(prec=count)))


def _value(node: ast.expr, names: Mapping[str, Decimal]) -> Decimal:
    match node:
        case ast.Constant(value=int(number)):
            return Decimal(number)
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return CONTEXT.minus(_value(operand, names))
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            return _OPERATORS[type(operator)](_value(left, names), _value(right, names))
        case ast.Call(func=ast.Name(id=function), args=[argument], keywords=[]) if (
            function in _FUNCTIONS
        ):
            return _FUNCTIONS[function](_value(argument, names))
    raise ValueError(f"formula: {ast.unparse(node)} is not arithmetic over {sorted(names)}")
