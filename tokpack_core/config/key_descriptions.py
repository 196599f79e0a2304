"""What the models say of each key, in the string below it.

Read when somebody asks, since reading the source of all models takes longer than a small command.
"""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from textwrap import dedent

from pydantic import BaseModel


def key_descriptions(model: type[BaseModel]) -> dict[str, str]:
    """key → text, of the keys that a model has itself and of those that it has from others."""
    own = [base for base in reversed(model.__mro__) if issubclass(base, BaseModel) and base is not BaseModel]
    return {key: text for base in own for key, text in strings_below(base).items() if key in model.model_fields}


def strings_below(model: type[BaseModel]) -> dict[str, str]:
    (definition,) = ast.parse(dedent(inspect.getsource(model))).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for key, below in pairwise(definition.body):
        match key, below:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(value=ast.Constant(str(text))):
                found[name] = inspect.cleandoc(text)
    return found
