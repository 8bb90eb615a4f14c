"""Builtins for lists."""

from __future__ import annotations

from envdsl.evaluate.builtins.registry import Topic
from envdsl.evaluate.compare import equal
from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.machine import Machine
from envdsl.evaluate.values import Slot, Value

lists = Topic("Lists")


@lists.builtin("map f list", "Applies `f` to each element.", "map (x: x * 2) [ 1 2 3 ]", "[ 2 4 6 ]")
def map_(machine: Machine, function: Slot, items: Slot) -> Value:
    elements = machine.list(items)
    if not elements:
        return []
    machine.sized(len(elements))
    return [machine.later(function, element) for element in elements]


@lists.builtin("filter f list", "The elements for which `f` gives true.", "filter (x: x > 1) [ 1 2 3 ]", "[ 2 3 ]")
def filter_(machine: Machine, function: Slot, items: Slot) -> Value:
    callee = machine.callee(function)
    elements = machine.list(items)
    return [element for element in elements if machine.boolean(machine.call(callee, element))]


@lists.builtin(
    "foldl' f start list",
    "Combines the elements from the left with `f accumulated element`, evaluating at each step.",
    "foldl' (sum: x: sum + x) 0 [ 1 2 3 ]",
    "6",
)
def foldl(machine: Machine, function: Slot, start: Slot, items: Slot) -> Value:
    callee = machine.callee(function)
    accumulated = start
    for element in machine.list(items):
        accumulated = machine.call2(callee, accumulated, element)
    return machine.force(accumulated)


@lists.builtin(
    "concatMap f list",
    "Applies `f`, which gives a list, to each element, and joins the results.",
    "concatMap (x: [ x x ]) [ 1 2 ]",
    "[ 1 1 2 2 ]",
)
def concat_map(machine: Machine, function: Slot, items: Slot) -> Value:
    callee = machine.callee(function)
    joined: list[Slot] = []
    for element in machine.list(items):
        part = machine.list(machine.call(callee, element))
        machine.sized(len(joined) + len(part)) if part else None
        joined += part
    return joined


@lists.builtin("concatLists lists", "Joins a list of lists.", "concatLists [ [ 1 ] [ 2 3 ] ]", "[ 1 2 3 ]")
def concat_lists(machine: Machine, items: Slot) -> Value:
    joined: list[Slot] = []
    for element in machine.list(items):
        joined += machine.list(element)
        machine.charge(1)
        if len(joined) > machine.limits.items:
            break
    machine.sized(len(joined))
    return joined


@lists.builtin("length list", "The number of elements.", 'length [ "a" "b" ]', "2")
def length(machine: Machine, items: Slot) -> Value:
    return len(machine.list(items))


@lists.builtin("head list", "The first element; an error for an empty list.", "head [ 1 2 3 ]", "1")
def head(machine: Machine, items: Slot) -> Value:
    elements = machine.list(items)
    if not elements:
        raise EvaluationError("eval-out-of-bounds", "an empty list has no head")
    return machine.force(elements[0])


@lists.builtin("tail list", "All but the first element; an error for an empty list.", "tail [ 1 2 3 ]", "[ 2 3 ]")
def tail(machine: Machine, items: Slot) -> Value:
    elements = machine.list(items)
    if not elements:
        raise EvaluationError("eval-out-of-bounds", "an empty list has no tail")
    machine.sized(len(elements) - 1)
    return elements[1:]


@lists.builtin("elem x list", "Whether an element equals `x`.", "elem 2 [ 1 2 3 ]", "true")
def elem(machine: Machine, wanted: Slot, items: Slot) -> Value:
    value = machine.force(wanted)
    elements = machine.list(items)
    machine.charge(len(elements) // 8)
    return any_of(machine, value, elements)


def any_of(machine: Machine, value: Value, elements: list[Slot]) -> bool:
    for element in elements:  # noqa: SIM110 - any() would call back through C
        if equal(machine, value, machine.force(element)):
            return True
    return False


@lists.builtin("elemAt list n", "The element at position `n`, counted from 0.", 'elemAt [ "a" "b" ] 1', '"b"')
def elem_at(machine: Machine, items: Slot, position: Slot) -> Value:
    index = machine.integer(position)
    elements = machine.list(items)
    if not 0 <= index < len(elements):
        raise EvaluationError("eval-out-of-bounds", f"there is no element {index} in a list of {len(elements)}")
    return machine.force(elements[index])


@lists.builtin("all f list", "Whether `f` gives true for every element.", "all (x: x > 0) [ 1 2 ]", "true")
def all_(machine: Machine, function: Slot, items: Slot) -> Value:
    callee = machine.callee(function)
    for element in machine.list(items):  # noqa: SIM110 - all() would call back through C
        if not machine.boolean(machine.call(callee, element)):
            return False
    return True


@lists.builtin("any f list", "Whether `f` gives true for an element.", "any (x: x > 1) [ 1 2 ]", "true")
def any_(machine: Machine, function: Slot, items: Slot) -> Value:
    callee = machine.callee(function)
    for element in machine.list(items):  # noqa: SIM110 - any() would call back through C
        if machine.boolean(machine.call(callee, element)):
            return True
    return False


@lists.builtin(
    "sort less list",
    "Sorts, stable, by `less a b`.",
    "sort (a: b: a > b) [ 1 3 2 ]",
    "[ 3 2 1 ]",
)
def sort(machine: Machine, function: Slot, items: Slot) -> Value:
    callee = machine.callee(function)
    elements = machine.list(items)
    machine.sized(len(elements))
    if len(elements) < 2:
        return elements
    # A merge sort of our own: list.sort would call back through C.
    runs = [[element] for element in elements]
    while len(runs) > 1:
        merged = [_merge(machine, callee, runs[i], runs[i + 1]) for i in range(0, len(runs) - 1, 2)]
        runs = merged + runs[len(merged) * 2 :]
    return runs[0]


def _merge(machine: Machine, function: Value, left: list[Slot], right: list[Slot]) -> list[Slot]:
    merged: list[Slot] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if machine.boolean(machine.call2(function, right[j], left[i])):
            merged.append(right[j])
            j += 1
        else:
            merged.append(left[i])
            i += 1
    return merged + left[i:] + right[j:]


@lists.builtin(
    "partition f list",
    "The elements for which `f` gives true (`right`) and the others (`wrong`).",
    "partition (x: x > 1) [ 1 2 3 ]",
    "{ right = [ 2 3 ]; wrong = [ 1 ]; }",
)
def partition(machine: Machine, function: Slot, items: Slot) -> Value:
    callee = machine.callee(function)
    right: list[Slot] = []
    wrong: list[Slot] = []
    for element in machine.list(items):
        (right if machine.boolean(machine.call(callee, element)) else wrong).append(element)
    return {"right": right, "wrong": wrong}


@lists.builtin(
    "groupBy f list",
    "A set of lists: each element under the name that `f` gives it.",
    'groupBy (x: if x > 1 then "big" else "small") [ 1 2 3 ]',
    "{ big = [ 2 3 ]; small = [ 1 ]; }",
)
def group_by(machine: Machine, function: Slot, items: Slot) -> Value:
    callee = machine.callee(function)
    groups: dict[str, list[Slot]] = {}
    for element in machine.list(items):
        groups.setdefault(str(machine.string(machine.call(callee, element))), []).append(element)
    machine.sized(len(groups))
    return dict(groups)


@lists.builtin("genList f n", "The list `[ (f 0) (f 1) … (f (n - 1)) ]`.", "genList (i: i * i) 4", "[ 0 1 4 9 ]")
def gen_list(machine: Machine, function: Slot, count: Slot) -> Value:
    size = machine.integer(count)
    if size < 0:
        raise EvaluationError("eval-out-of-bounds", f"cannot make a list of {size} elements")
    machine.sized(size)
    return [machine.later(function, index) for index in range(size)]


@lists.builtin("range first last", "The integers from `first` up to and with `last`.", "range 2 5", "[ 2 3 4 5 ]")
def range_(machine: Machine, first: Slot, last: Slot) -> Value:
    start, end = machine.integer(first), machine.integer(last)
    if start > end:
        return []
    machine.sized(end - start + 1)
    return list(range(start, end + 1))


@lists.builtin("optional condition x", "`[ x ]` where the condition holds, else `[ ]`.", 'optional true "a"', '[ "a" ]')
def optional(machine: Machine, condition: Slot, element: Slot) -> Value:
    return [element] if machine.boolean(condition) else []


@lists.builtin(
    "optionals condition list", "The list where the condition holds, else `[ ]`.", "optionals false [ 1 2 ]", "[ ]"
)
def optionals(machine: Machine, condition: Slot, items: Slot) -> Value:
    return machine.force(items) if machine.boolean(condition) else []
