"""Changes of JSON that leave JSON: most changes of its bytes would not get past the parser."""

from __future__ import annotations

import json
import random
from typing import Any

VALUES = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    0.5,
    -0.0,
    1e30,
    1e308,
    2**31,
    2**63,
    10**30,
    "",
    "a",
    "0",
    "\ud800",
    [],
    {},
    [[]],
)


def mutate(data: bytes, seed: int, head: int) -> bytes | None:
    """Return changed JSON; None if it is none. ``head`` bytes before it stay."""
    try:
        tree = json.loads(data[head:])
        choose = random.Random(seed)
        for _ in range(choose.choice((1, 1, 1, 2, 4))):
            tree = _change(tree, choose)
        return data[:head] + json.dumps(tree).encode()
    except (ValueError, RecursionError):
        return None


def _change(tree: Any, choose: random.Random) -> Any:
    places = list(_places(tree))
    if not places:
        return choose.choice(VALUES)
    box, key = choose.choice(places)
    other, its = choose.choice(places)
    what = choose.randrange(6)
    if what == 0:
        box[key] = choose.choice(VALUES)
    elif what == 1:
        box[key] = json.loads(json.dumps(other[its]))
    elif what == 2:
        del box[key]
    elif what == 3:
        box[key] = _nudge(box[key], choose)
    elif what == 4 and isinstance(box, list):
        box.insert(choose.randrange(len(box) + 1), json.loads(json.dumps(other[its])))
    elif isinstance(box, dict) and isinstance(other, dict):
        box[its] = box.pop(key)
    return tree


def _nudge(value: Any, choose: random.Random) -> Any:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, (int, float)):
        return choose.choice((value + 1, value - 1, -value, value * 2, value * 1000, str(value), [value]))
    if isinstance(value, str):
        at = choose.randrange(len(value) + 1)
        return choose.choice(
            (value[:at], value[at:], value + value, value[:at] + choose.choice(' <>"é\0_0') + value[at:])
        )
    return list(value.values()) if isinstance(value, dict) else dict.fromkeys(map(str, value))


def _places(tree: Any) -> Any:
    """Yield every place of a tree, as what holds it and its key there."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in list(items):
        yield tree, key
        yield from _places(value)
