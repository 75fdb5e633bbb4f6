"""Formulas: the design of a regression from a text such as "visits ~ age + female * plan" and a codebook.

formulaic reads the text, expands its operators and decides how categories are coded. It is given no row, and
nothing to evaluate: functions of fields are evaluated here, from a list. So a row's predictors depend on that
row and on what is public, and a stranger's formula runs no code.
"""

import ast
import functools
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.values import shown
from dpmc.models.codebook import Codebook, Field
from dpmc.models.columns import text_of
from dpmc.models.design import Design, Fault

#: What a row's numbers are computed by, entry by entry: functions by their names in a formula, operators by
#: those of their nodes.
ROW_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in "abs exp log log10 log1p log2 sqrt".split()},
    "I": np.positive,
}
ROW_OPERATORS: dict[str, Callable[..., Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "Pow": operator.pow,
    "USub": operator.neg,
    "UAdd": operator.pos,
}
OPERATIONS = ROW_FUNCTIONS | ROW_OPERATORS
CALLS = f"{', '.join(sorted(ROW_FUNCTIONS))}, C, bs, offset"
#: What to write in place of functions that learn from the rows.
INSTEAD = {
    **dict.fromkeys("center scale standardize".split(), "write the field: the codebook standardises it"),
    **dict.fromkeys("cc cr cs ns te".split(), "write bs(…, knots=[…])"),
    "poly": "write powers, as in I(age**2)",
    **dict.fromkeys(["factor", "relevel"], 'write the field, or C(field, "reference")'),
    "hashed": "declare the levels in the codebook",
    "lag": "a row's predictors are its own",
}
#: Operators that Python writes otherwise, or has not: a formula is parsed as an expression of Python.
OTHERWISE = {":": "@", "^": "**"}
MOST_TERMS = 1000  #: of a formula, before equal ones are merged
MOST_COLUMNS = 2000  #: of all terms, also those that formulaic leaves out
MOST_PARTS = 1000  #: names, numbers, operators and the like
ROWS_OF_TERMS = 4096  #: rows by which a term is standardised that is not a field as it is
OPEN = ("norm", "weights")  #: arguments of a design that are no part of a formula

#: A number computed from fields: a field's name, a constant, or a function's name and what it is of.
Tree = str | float | tuple[Any, ...]


class Category(NamedTuple):
    """A column for each level of a field: 1 where it is that level."""

    of: str
    levels: tuple[str, ...]
    places: tuple[int, ...]  # of these levels in the codebook; the first is the reference

    def labels(self, name: str) -> list[str]:
        return [f"{name}={level}" for level in self.levels]

    def columns(self, fields: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Return the columns (n,) of a design, from fields (n,) by name."""
        return [(fields[self.of] == place).astype(float) for place in self.places]


class Computed(NamedTuple):
    """One column, computed entry by entry."""

    of: Tree

    def labels(self, name: str) -> list[str]:
        return [name]

    def columns(self, fields: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Return the columns (n,) of a term, from fields (n,)."""
        return [_value(self.of, fields)]


class Spline(NamedTuple):
    """Columns of a basis of splines with public knots; NaN beyond the bounds unless `beyond` says more."""

    of: Tree
    knots: tuple[float, ...]
    bounds: tuple[float, float]
    degree: int
    beyond: str

    def labels(self, name: str) -> list[str]:
        return [f"{name}[{i + 1}]" for i in range(len(self.knots) + self.degree)]

    def columns(self, fields: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        from formulaic.transforms import basis_spline  # slow to import

        low, high = self.bounds
        x = _value(self.of, fields)
        usable = np.isfinite(x) if self.beyond else (x >= low) & (x <= high)
        basis = basis_spline(
            np.where(usable, x, low),
            knots=self.knots,
            degree=self.degree,
            lower_bound=low,
            upper_bound=high,
            extrapolation=self.beyond or "clip",
        )
        return [np.where(usable, column, np.nan) for column in basis.values()]


Factor = Category | Computed | Spline


class Term(NamedTuple):
    """One predictor: a product of columns of factors."""

    name: str
    columns: tuple[tuple[str, int], ...]  # each a factor's name, and which of its columns


class FormulaDesign(Design):
    """The design of a formula: z (n, coefficients) of rows of the fields that it names.

    Terms t (n, k) are in the table's own units, z = (t − centre)/scale by public numbers: the codebook's for
    a field alone; 0 and 1 for products of zeros and ones; else mean and sd of the term over rows simulated
    from the codebook. Without an intercept nothing is centred. `more` are arguments of `Design` that a
    formula leaves open. Raises DpmcError for what a formula may not have, and for fields that the codebook
    lacks.
    """

    def __init__(self, formula: str, *, codebook: Any = None, who: str = "Design", **more: Any) -> None:
        where = f"{who}: formula"
        if codebook is None:
            raise DpmcError(f"{where}: needs codebook=…: it says what is public about the fields")
        for name in more:
            if name not in OPEN:
                raise DpmcError(f"{who}: {name}: must not be given beside a formula, which says so itself")
        reader = _Reader(Codebook.given(codebook), where)
        self.formula = formula
        self.outcome = reader.outcome(formula)
        intercept, self.terms = reader.terms(formula)
        self.factors = reader.factors
        used = {name for factor in self.factors.values() for name in _names(factor.of)}
        for name in used & {self.outcome, *reader.offset.values()}:
            raise DpmcError(f"{where}: {name}: is outcome or offset, and so no predictor")
        names = [field.name for field in reader.book.fields if field.name in used]
        more |= reader.offset
        super().__init__(names, intercept=intercept, codebook=reader.book, who=who, **more)
        self.coefficients = (*(("intercept",) if intercept else ()), *(term.name for term in self.terms))
        self.standard = self._standard(where)

    @property
    def options(self) -> dict[str, tuple[Any, Any]]:
        """Return the arguments beside the formula by name, each with its default."""
        return {name: pair for name, pair in super().options.items() if name in OPEN}

    def _standard(self, where: str) -> np.ndarray:
        """Return centre and scale (2, k) of each term."""
        held = dict(zip(self.columns, np.array([self.centre, self.scale]).T, strict=False))
        drawn = self.own_terms(self.simulate(np.random.default_rng(0), ROWS_OF_TERMS))
        standard = np.tile([[0.0], [1.0]], len(self.terms))
        for i, (name, columns) in enumerate(self.terms):
            factors = [self.factors[factor] for factor, _ in columns]
            if len(factors) == 1 and isinstance(factors[0], Computed) and factors[0].of in self.columns:
                standard[:, i] = held[factors[0].of]
            elif not all(map(self._is_binary, factors)):
                pair = drawn[:, i].mean(), drawn[:, i].std()
                standard[:, i] = [float(f"{number:.2e}") for number in pair]
            if not 0.0 < standard[1, i] < np.inf:
                raise DpmcError(f"{where}: {name}: is the same in all rows that the codebook simulates")
        standard[0] *= self.intercept
        return standard

    def _indicators(self) -> list[bool]:
        return [all(self._is_binary(self.factors[name]) for name, _ in term.columns) for term in self.terms]

    def _is_binary(self, factor: Factor) -> bool:
        """Return whether a factor is 0 or 1."""
        binary = [self.columns[i] for i in self.binary]
        return isinstance(factor, Category) or (isinstance(factor, Computed) and factor.of in binary)

    def own_terms(self, x: np.ndarray) -> np.ndarray:
        """Return terms (n, k), in the table's units, of fields (n, columns); NaN in a row that has one."""
        fields = dict(zip(self.columns, np.ascontiguousarray(x.T, dtype=float), strict=False))
        with np.errstate(all="ignore"):
            held = {name: factor.columns(fields) for name, factor in self.factors.items()}
            t = np.empty((len(x), len(self.terms)))
            for i, term in enumerate(self.terms):
                t[:, i] = functools.reduce(operator.mul, (held[name][j] for name, j in term.columns))
        t[~np.isfinite(x).all(axis=1)] = np.nan
        return t

    @property
    def offset_removed(self) -> float:
        return super().offset_removed if self.intercept else 0.0

    def offset(self, rows: Any) -> np.ndarray | float:
        """Return the offsets (n,) of rows, as `Design.offset`; without an intercept they are not centred."""
        offset = super().offset(rows)
        return offset if self.intercept else offset + super().offset_removed

    def _scaled(self, rows: Any) -> np.ndarray:
        """Return z (n, coefficients) without intercept and bound of the norm; NaN in a row that has infinity.

        So no mechanism can take the row for one with terms of a certain sign.
        """
        centre, scale = self.standard
        z = (self.own_terms(self._numbers(rows)) - centre) / scale
        z[~np.isfinite(z).all(axis=1)] = np.nan
        return z

    def faults(self, x: np.ndarray, who: str) -> Iterator[Fault]:
        """Yield those of `Design.faults` in x (n, columns), and each term's values that are not finite."""
        yield from super().faults(x, who)
        for term, values in zip(self.terms, self.own_terms(x).T, strict=True):
            yield Fault(values, ~np.isfinite(values), f"{who}: {term.name}", "a finite number")

    def simulate(self, generator: np.random.Generator, n: int) -> np.ndarray:
        """Draw fields (n, columns) as `Design.simulate`, in place of rows without a finite term others."""
        x = super().simulate(generator, n)
        usable = np.isfinite(self.own_terms(x)).all(axis=1)
        if not usable.any():
            raise DpmcError(
                f"formula {shown(self.formula)}: no row that the codebook simulates has finite terms"
            )
        x[~usable] = x[usable][np.arange(np.sum(~usable)) % usable.sum()]
        return x


def _value(tree: Tree, fields: Mapping[str, np.ndarray]) -> Any:
    """Return a tree's value (n,) at the entries of fields, each (n,)."""
    if isinstance(tree, str):
        return fields[tree]
    if isinstance(tree, float):
        return np.float64(tree)  # which overflows to infinity
    name, *of = tree
    return OPERATIONS[name](*map(_value, of, itertools.repeat(fields)))


def _names(tree: Tree) -> Iterator[str]:
    """Yield the fields of a tree."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, tuple):
        for each in tree[1:]:
            yield from _names(each)


class _Reader:
    """Reads one formula; `factors` and `offset`, as arguments of `Design`, are what it found."""

    def __init__(self, book: Codebook, where: str) -> None:
        self.book, self.where = book, where
        self.factors: dict[str, Factor] = {}
        self.offset: dict[str, str] = {}

    def wrong(self, part: Any, rule: str) -> DpmcError:
        """Return the error that a part of the formula breaks a rule."""
        text = self.plain(ast.unparse(part)) if isinstance(part, ast.AST) else part
        return DpmcError(f"{self.where}: {shown(text)}: {rule}")

    def outcome(self, formula: str) -> str:
        """Return the name of the outcome's field."""
        left, *right = formula.split("~")
        if len(right) != 1:
            raise self.wrong(formula, 'must have one "~"')
        name = left.strip()
        if not re.fullmatch("`[^`]+`|[^`()+*/:-]+", name):
            raise self.wrong(name, "the outcome must be a field as it is")
        return self.book.field(name.strip("`")).name

    def terms(self, formula: str) -> tuple[bool, tuple[Term, ...]]:
        """Return whether there is an intercept, and the other terms."""
        from formulaic import Formula  # slow to import

        text = formula.partition("~")[2].strip()
        if self.size(self.parsed(text)) > MOST_TERMS:
            raise self.wrong(formula, f"must have at most {MOST_TERMS} terms")
        try:
            read = [[self.node(factor) for factor in term.factors] for term in Formula(text)]
        except Exception:  # formulaic's, of many types
            raise self.wrong(formula, "is no formula") from None
        products: list[list[str]] = []
        for factors in read:
            match factors:
                case [ast.Constant(value=1)]:
                    products.append([])
                case [ast.Call(func=ast.Name(id="offset")) as call]:
                    self.offset |= self.shift(call)
                case _:
                    products.append(list(map(self.factor, factors)))
        if len(self.offset) > 1:
            raise self.wrong(formula, "must have one offset at most")
        widths = {name: len(factor.labels("")) for name, factor in self.factors.items()}
        if sum(math.prod(map(widths.__getitem__, each)) for each in products) > MOST_COLUMNS:
            raise self.wrong(formula, f"must have at most {MOST_COLUMNS} coefficients")
        return [] in products, self.coded(products)

    def parsed(self, text: str) -> ast.expr:
        """Return an expression's syntax tree; a name in backticks is there in hexadecimal digits."""

        def plain(found: re.Match[str]) -> str:
            part = found.group()
            return OTHERWISE.get(part) or (f"_x{part[1:-1].encode().hex()}" if part[0] == "`" else part)

        try:
            parsed = ast.parse(re.sub(r"\"[^\"]*\"|'[^']*'|`[^`]*`|:|\^", plain, text), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self.wrong(text, "is no formula") from None
        if sum(1 for _ in ast.walk(parsed)) > MOST_PARTS:  # so that no part is nested too deeply
            raise self.wrong(text, "is too long a formula")
        return parsed

    @staticmethod
    def plain(text: str) -> str:
        """Return a text with names as they were before `parsed`."""
        named = "\\b_x((?:[0-9a-f]{2})+)\\b"
        text = re.sub(named, lambda found: bytes.fromhex(found[1]).decode(errors="replace"), text)
        return text.replace(" @ ", ":")

    def size(self, node: ast.expr) -> int:
        """Return a bound of the number of terms, an implied intercept not among them.

        Raises DpmcError for what formulas lack.
        A factor times itself is that factor, in R, too: outside of sums it is refused, as a power is meant.
        """
        match node:
            case ast.Constant(value=int(number) | float(number)) if number not in (0, 1):
                raise self.wrong(node, "is no term: add and multiply within I()")
            case ast.Name() | ast.Constant() | ast.Call(func=ast.Name()):
                return 1
            case ast.UnaryOp(op=ast.UAdd() | ast.USub()):
                return self.size(node.operand)
            case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=int(power))):
                if power > 1:
                    self.differ(node, node.left, node.left)
                return min(self.size(node.left), MOST_TERMS + 1) ** min(max(power, 1), 10)
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.MatMult()):
                a, b = self.size(node.left), self.size(node.right)
                if isinstance(node.op, ast.Add | ast.Sub):
                    return a + b
                self.differ(node, node.left, node.right)
                return a + b + a * b
        self.tree(node)  # refuses it
        raise self.wrong(node, "is not allowed in a formula")

    def differ(self, node: ast.expr, left: ast.expr, right: ast.expr) -> None:
        """Raise DpmcError if products, which are not sums, have a factor in common."""

        def factors(part: ast.expr) -> set[str]:
            if isinstance(part, ast.BinOp) and not isinstance(part.op, ast.Add | ast.Sub):
                return factors(part.left) | factors(part.right)
            return {ast.unparse(part)} if isinstance(part, ast.Name | ast.Call) else set()

        for twice in map(self.plain, sorted(factors(left) & factors(right))):
            raise self.wrong(node, f"is {twice} alone, and no power: write I({twice}**2)")

    def node(self, factor: Any) -> ast.expr:
        """Return the syntax tree of a factor of formulaic's."""
        is_name = factor.eval_method is type(factor).EvalMethod.LOOKUP
        return self.parsed(f"`{factor.expr}`" if is_name else factor.expr)

    def shift(self, call: ast.Call) -> dict[str, str]:
        """Return the field of an offset by the argument of `Design` that says so."""
        match [self.tree(of) for of in call.args], call.keywords:
            case [str(name)], []:
                return {"offset": name}
            case [("log", str(name))], []:
                return {"exposure": name}
        raise self.wrong(call, "must be offset(field) or offset(log(field))")

    def field(self, node: ast.expr) -> Field:
        """Return the field that a name says."""
        if not isinstance(node, ast.Name):
            raise self.wrong(node, "must be the name of a field")
        return self.book.field(self.plain(node.id))

    def factor(self, node: ast.expr) -> str:
        """Return the name of a factor, which is kept."""
        name = self.plain(ast.unparse(node))
        found: Factor
        match node:
            case ast.Name() if (field := self.field(node)).type == "string":
                name, found = field.name, self.category(node, None)
            case ast.Call(func=ast.Name(id="C"), args=[ast.Name() as of], keywords=[]):
                name, found = self.field(of).name, self.category(of, None)
            case ast.Call(
                func=ast.Name(id="C"), args=[ast.Name() as of, ast.Constant(value=level)], keywords=[]
            ):
                name, found = self.field(of).name, self.category(of, level)
            case ast.Call(func=ast.Name(id="C")):
                raise self.wrong(node, 'must be C(field) or C(field, "reference")')
            case ast.Call(func=ast.Name(id="bs"), args=[of, *more]):
                found = self.spline(node, of, bool(more))
            case ast.Constant():
                raise self.wrong(node, "is no term: multiply within I()")
            case _:
                found = Computed(self.tree(node))
        if not any(_names(found.of)):
            raise self.wrong(node, "names no field")
        if self.factors.setdefault(name, found) != found:
            raise self.wrong(name, "has two references")
        return name

    def tree(self, node: ast.expr) -> Tree:
        """Return the number that an expression is; raise DpmcError for one that is not allowed."""
        match node:
            case ast.Constant(value=int(number) | float(number)) if not isinstance(number, bool):
                return float(min(number, 1e300))
            case ast.Name():
                field = self.field(node)
                if field.type == "string":
                    raise self.wrong(field.name, "is a category, not a number")
                return field.name
            case ast.UnaryOp(op=op, operand=of) if type(op).__name__ in ROW_OPERATORS:
                return (type(op).__name__, self.tree(of))
            case ast.BinOp(left=left, op=op, right=right) if type(op).__name__ in ROW_OPERATORS:
                return (type(op).__name__, self.tree(left), self.tree(right))
            case ast.Call(func=ast.Name(id=name), args=[of], keywords=[]) if name in ROW_FUNCTIONS:
                return (name, self.tree(of))
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                rule = INSTEAD.get(name, f"there are {CALLS}")
                rule = f"write {name}(…)" if name in ROW_FUNCTIONS else rule
                raise self.wrong(node, f"is not allowed in a formula: {rule}")
            case ast.Attribute():
                raise self.wrong(node, "is not allowed in a formula: a name with a dot has backticks")
        raise self.wrong(node, f"is not allowed in a formula: fields, numbers, + - * / ** and {CALLS} are")

    def category(self, node: ast.expr, reference: Any) -> Category:
        """Return the levels of a field, the reference first."""
        field = self.field(node)
        levels = list(field.levels)
        if not levels:
            raise self.wrong(field.name, "is no category: it needs type: string and constraints: enum")
        first = levels[0] if reference is None else text_of(reference)
        if first not in levels:
            raise self.wrong(first, f"must be a level of {field.name}: {', '.join(levels)}")
        order = sorted(levels, key=lambda level: level != first)  # the others as they were
        return Category(field.name, tuple(order), tuple(map(levels.index, order)))

    def spline(self, node: ast.Call, of: ast.expr, has_more: bool) -> Spline:
        """Return the spline that a call of bs is."""
        rule = "must be bs(field, knots=[…], degree=3, lower_bound=…, upper_bound=…, extrapolation=…)"
        try:
            given = {str(each.arg): ast.literal_eval(each.value) for each in node.keywords}
            knots = tuple(map(float, given.pop("knots")))
            degree, beyond = given.pop("degree", 3), given.pop("extrapolation", "")
            tree = self.tree(of)
            declared = self.book.field(tree).constraints if isinstance(tree, str) else None
            low = given.pop("lower_bound", declared and declared.minimum)
            high = given.pop("upper_bound", declared and declared.maximum)
            edges = [float(low), *knots, float(high)]
        except (KeyError, ValueError, TypeError, OverflowError):
            raise self.wrong(node, f"{rule}, with public numbers") from None
        known = beyond in ("", "clip", "zero", "extend") and degree in (1, 2, 3, 4, 5)
        if given or has_more or not known or type(degree) is not int:
            raise self.wrong(node, rule)
        if not all(a < b for a, b in itertools.pairwise(edges)) or not np.isfinite(edges).all():
            raise self.wrong(node, "knots must increase between the bounds")
        return Spline(tree, knots, (edges[0], edges[-1]), degree, beyond)

    def coded(self, products: list[list[str]]) -> tuple[Term, ...]:
        """Return the terms of products of factors, categories with a level less where formulaic says so."""
        import pandas  # slow to import
        from formulaic import Formula, ModelSpec
        from formulaic.parser.types import Factor as Named
        from formulaic.parser.types import Term as Product

        names = list(self.factors)
        one = Named("1", eval_method="literal")
        formula = [Product([Named(f"x{names.index(each)}") for each in of] or [one]) for of in products]
        row = pandas.DataFrame(index=[0])
        for i, factor in enumerate(self.factors.values()):
            levels = len(factor.levels) if isinstance(factor, Category) else 0
            row[f"x{i}"] = pandas.Categorical([0], range(levels)) if levels else 0.0
        found = ModelSpec(Formula(formula), output="numpy").get_model_matrix(row, context={}).model_spec
        terms: list[Term] = []
        for scoped in itertools.chain(*(entry.scoped_terms for entry in found.structure)):
            columns = []
            for part in reversed(scoped.factors):
                name = names[int(part.factor.expr[1:])]
                labels = list(enumerate(self.factors[name].labels(name)))
                columns.append([(label, (name, i)) for i, label in labels[bool(part.reduced) :]])
            for product in itertools.product(*columns) if columns else ():
                texts, places = zip(*reversed(product), strict=True)
                terms.append(Term(":".join(texts), places))
        return tuple(terms)
