"""Instances for the dry run: repositories of two files, each with one fault, a test for it, and a sentence about it.

One cannot be solved by its sentence; one asks for haste, so that the scripted model does not look where markers point.
"""

from __future__ import annotations

from .instances import Instance

ITEMS = 40  # functions in a file: enough that reading it again is worth a marker
NOTES = 250  # lines: more than the observation template shows, so that it cuts them
COUNT = 6


def tiny_instances() -> list[Instance]:
    """`COUNT` of them."""
    return [_instance(number) for number in range(COUNT)]


def _instance(number: int) -> Instance:
    item = 5 + 5 * number
    name, right = f"item_{item}", f"count * {item} + {item * item}"
    said = right if number != 1 else right.replace("+", "-")
    task = f"In `shop.py`, `{name}(count)` must return `{said}`." + (" Be quick." if number == 2 else "")
    readme = "".join(f"Item {n} costs {n} for each, and {n * n} for the box it comes in.\n" for n in range(NOTES))
    test = f"import shop\n\nfor count in range(9):\n    assert shop.{name}(count) == {right}\n"
    return {
        "instance_id": f"tiny__shop-{number}",
        "problem_statement": task,
        "files": {"shop.py": _shop(item), "README.md": readme},
        "test_files": {"check.py": test},
        "test_command": "python3 check.py",
    }


def _shop(wrong: int) -> str:
    parts = (
        f"def item_{n}(count):\n    return count * {n} {'*' if n == wrong else '+'} {n * n}\n" for n in range(ITEMS)
    )
    return "\n\n".join(parts)
