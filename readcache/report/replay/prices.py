"""What models cost: the table `models.json`, with a date and a source for each row, and the user's own rows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from readcache import Policy
from readcache.core.model.errors import UsageError, did_you_mean
from readcache.core.model.policy import Prices

_TABLE = Path(__file__).with_name("models.json")
_REQUIRED = ("input", "read", "write", "output")
# Behind a model's name: the date of a version, and what Bedrock and Claude Code append.
_VERSION = r"(?:[-@](?:\d{8}|\d{4}-\d\d-\d\d|latest|preview)|-v\d+(?::\d+)?|\[1m\])*"
USUAL = Policy().prices
ANSWER = 560  # tokens of an answer, thinking included: the median of recorded requests


@dataclass(frozen=True, slots=True)
class ModelPrices:
    """US dollars for a million tokens: of input without a cache, read from the prompt cache, written to it, of output.

    `write_hour`: to a cache that holds for an hour; None: as `write`. `least`: tokens of the shortest prompt that is
    cached. `seconds`: how long a cached prompt is kept after its last use; None: nobody promises. A request of more
    than `above` tokens costs `times_input` and `times_output` as much, all of it. `date`: when the source said so.
    """

    name: str
    input: float
    read: float
    write: float
    output: float
    write_hour: float | None = None
    least: int = 0
    seconds: float | None = None
    above: float | None = None
    times_input: float = 1
    times_output: float = 1
    date: str = ""
    source: str = ""

    def cost(
        self, *, fresh: float = 0, written: float = 0, hour: float = 0, read: float = 0, output: float = 0
    ) -> float:
        """Millionths of a dollar for one request with so many tokens of each kind."""
        dear = self.above is not None and fresh + written + hour + read > self.above
        to_hour = self.write if self.write_hour is None else self.write_hour
        of_input = fresh * self.input + written * self.write + hour * to_hour + read * self.read
        of_output = output * self.output
        return of_input * self.times_input + of_output * self.times_output if dear else of_input + of_output

    def for_an_hour(self) -> ModelPrices:
        """The same where everything is written to a cache that holds for an hour."""
        return replace(self, write=self.write if self.write_hour is None else self.write_hour, seconds=3600.0)

    @property
    def ratios(self) -> Prices:
        """As multiples of uncached input, with an answer as recorded requests have it."""
        return Prices(self.write / self.input, self.read / self.input, self.output / self.input, answer=ANSWER)

    @property
    def label(self) -> str:
        """Its name, with the date of the prices."""
        return f"{self.name} ({self.date or 'no date'})"


PriceTable = Mapping[str, ModelPrices]
# Where no price is known: the ratios by which a session weighs its omissions, and no money.
RATIOS = ModelPrices("", 1.0, USUAL.read, USUAL.write, USUAL.output)


@cache
def built_in_prices() -> PriceTable:
    """The table of this package."""
    return read_prices(str(_TABLE))


def read_prices(path: str) -> PriceTable:
    """The rows of a JSON file: model -> fields of `ModelPrices`. `input`, `read`, `write` and `output` are required.
    UsageError, in one line, for anything else."""
    try:
        rows = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as prices: {error}") from error
    if not isinstance(rows, dict) or not rows:
        raise UsageError(f'{path} has no prices: give {{"MODEL": {{"input": 3, "read": 0.3, …}}}}')
    return {name: _row(path, name, row) for name, row in rows.items()}


def _row(path: str, name: str, row: Any) -> ModelPrices:
    known = {field.name: field for field in fields(ModelPrices)[1:]}
    if not isinstance(row, dict) or not row.keys() >= set(_REQUIRED):
        raise UsageError(f"{path}: {name} lacks one of {', '.join(_REQUIRED)}: US dollars for a million tokens")
    for key, value in row.items():
        if key not in known:
            raise UsageError(
                f"{path}: {name} has an unknown field {key!r}{did_you_mean(key, known)}; prices are US dollars"
            )
        if key in ("date", "source"):
            is_right, form = isinstance(value, str), "text"
        else:
            is_right, form = (
                type(value) in (int, float) and 0 <= value < float("inf"),
                "number of 0 or more; prices are US dollars",
            )
        if not is_right:
            raise UsageError(f"{path}: {name}: {key} is {value!r}: give a {form}")
    if not row["input"]:
        raise UsageError(f"{path}: {name}: input is 0, and everything is counted in tokens of input")
    return ModelPrices(name, **row)


def prices_of(model: str, table: PriceTable) -> ModelPrices:
    """The row of a model that the user names. UsageError, in one line, if there is none."""
    found = find_prices(model, table)
    if found is None:
        known = did_you_mean(model, table) or f": known are {', '.join(table)}"
        raise UsageError(f"--model {model!r} has no prices{known}; readcache replay --prices FILE takes yours")
    return found


def find_prices(model: str, table: PriceTable) -> ModelPrices | None:
    """The row of a model by its name in a transcript, which may have a provider in front and a version behind; None
    if the table lacks it: a model of a similar name may cost anything."""
    name = _plain(model)
    for row in sorted(table, key=len, reverse=True):
        if re.fullmatch(rf"(?:.*[^a-z0-9])?{re.escape(_plain(row))}{_VERSION}", name):
            return table[row]
    return None


def _plain(name: str) -> str:
    return name.lower().replace(".", "-")
