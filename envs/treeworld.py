"""TreeWorld: find the node that holds a value in a hidden tree with `get_children(node_id)` (LUMINA, section 4.1)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from envs.action import DONE, Action, Parameter, Signature, shown
from envs.game import Game, Outcome
from envs.problem import content_hash
from envs.world import BudgetParams, World, check_fields, check_values

Value = int | str


@dataclass(frozen=True)
class TreeParams(BudgetParams):
    """The generator's knobs.

    Attributes:
        nodes: Nodes of the tree, at least 1: the complexity.
        arity: Most children of a node, at least 1.
    """

    nodes: int = 15
    arity: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("nodes", "arity"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} must be at least 1")


class TreeState(NamedTuple):
    """What the agent has seen: the nodes it knows, in the order in which it came to know or expand them, and whether one has the value."""

    open: tuple[str, ...]  # revealed, not expanded
    expanded: tuple[str, ...]
    found: bool


@lru_cache(maxsize=10_000)
def _expand(node: str) -> Action:
    return Action("get_children", (node,))


class TreeGame(Game[TreeState]):
    """Finds a node with the wanted value.

    Nothing tells an open node from another before it is expanded, so all of them are optimal until the wanted value is revealed.
    T* is the worst case over the orders that this allows: a node that reveals the value comes last, after every node that can be
    expanded without it, and `done()` follows. The expert takes that order, so it needs exactly T* actions, and no optimal policy needs
    more: it expands the nodes as they were revealed, except that it leaves those for last whose children hold the value. An expert
    that went straight to them would show what the agent cannot know.
    """

    def __init__(self, root: str, children: Mapping[str, tuple[str, ...]], values: Mapping[str, Value], wanted: Value) -> None:
        self.root, self.children, self.values, self.wanted = root, children, values, wanted
        self.initial = TreeState((root,), (), values[root] == wanted)
        self.order = [root]  # the nodes below the root, parents first
        for node in self.order:
            self.order.extend(children.get(node, ()))
        holders = {node for node, value in values.items() if value == wanted}
        self.revealing = {node for node in self.order if not holders.isdisjoint(children.get(node, ()))}
        self.reachable = self.initial.found or bool(self.revealing)

    def fields(self) -> dict[str, Any]:
        children = {n: list(c) for n, c in self.children.items() if c}
        return {"root": self.root, "children": children, "values": dict(self.values), "wanted": self.wanted}

    def canonical(self) -> str:
        """The tree's shape with the wanted nodes marked; ids, values, the order of children and nodes apart from the root do not count."""
        codes: dict[str, str] = {}
        for node in reversed(self.order):
            below = sorted(codes[c] for c in self.children.get(node, ()))
            codes[node] = content_hash([self.values[node] == self.wanted, below])
        return content_hash(["treeworld", codes[self.root]])

    def act(self, state: TreeState, action: Action) -> Outcome:
        """Expanding a node again costs a turn and shows its children again."""
        node = action.args[0]
        if node in state.expanded:
            return Outcome(state)
        if node not in state.open:
            return Outcome(state, refusal=f"no node {shown(node)} has been revealed")
        children = self.children.get(node, ())
        still_open = tuple([n for n in state.open if n != node])
        return Outcome(TreeState(still_open + children, (*state.expanded, node), state.found or node in self.revealing))

    def optimal(self, state: TreeState) -> tuple[Action, ...]:
        if state.found:
            return (DONE,)
        if not self.reachable:
            return ()
        if self.revealing.isdisjoint(state.open):
            return tuple(map(_expand, state.open))
        return tuple(map(_expand, sorted(state.open, key=self.revealing.__contains__)))

    def legal(self, state: TreeState) -> list[Action]:
        return [*map(_expand, (*state.expanded, *state.open)), DONE]

    def statement(self, style: str) -> str:
        if style == "compact":
            return f"{self._nodes((self.root,), style)} ?{self.wanted}"
        return f"Root: {self._nodes((self.root,), style)}\nWanted value: {self.wanted!r}"

    def feedback(self, state: TreeState, action: Action, after: TreeState, style: str) -> str:
        node = action.args[0]
        children = self.children.get(node, ())
        if style == "compact":
            return self._nodes(children, style) or "-"
        return f"Children of {node}: {self._nodes(children, style)}." if children else f"{node} has no children."

    def state_text(self, state: TreeState, style: str) -> str:
        """The nodes seen so far: those not expanded, then, behind a bar in the compact style, those expanded."""
        unseen, seen = self._nodes(state.open, style), self._nodes(state.expanded, style)
        if style == "compact":
            return f"{unseen}|{seen}"
        return f"not expanded: {unseen or 'none'}; expanded: {seen or 'none'}"

    def plan_text(self, state: TreeState, style: str) -> str:
        """Names the node to expand by its value, so its id is still to be found."""
        action = self.optimal(state)[0]
        if action == DONE:
            return "the wanted value has been revealed: call done()." if style == "verbose" else "done"
        node = action.args[0]
        value = self.values[node]
        return f"={value}" if style == "compact" else f"look at the children of the unexpanded node with value {value!r}."

    def thought(self, state: TreeState, action: Action) -> str:
        if action == DONE:
            node = next(n for n in (*state.open, *state.expanded) if self.values[n] == self.wanted)
            return f"Node {node} has the wanted value {self.wanted!r}."
        node = action.args[0]
        return (
            f"The value {self.wanted!r} has not shown up yet. Node {node} (value {self.values[node]!r}) is not expanded, so I look there."
        )

    def _nodes(self, nodes: tuple[str, ...], style: str) -> str:
        values = self.values
        if style == "compact":
            return " ".join([f"{n}={values[n]}" for n in nodes])
        return ", ".join([f"{n} (value {values[n]!r})" for n in nodes])


class TreeWorld(World):
    """Find a value in a hidden tree."""

    name: ClassVar[str] = "treeworld"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "find the node that holds a value in a hidden tree by get_children(node_id)"
    params: ClassVar[Any] = TreeParams
    signatures: ClassVar[tuple[Signature, ...]] = (
        Signature(
            "get_children",
            "Expands a node: tells its children with their values.",
            (Parameter("node_id", str, "Id of a node that you have been told."),),
        ),
    )
    rules: ClassVar[str] = (
        "A tree is hidden from you, all but its root. Every node has an id and a value. Find out which node has the wanted value: "
        "expand nodes to be told their children, and call done() as soon as the wanted value has shown up.\n"
        "- Only nodes that you have been told can be expanded.\n"
        "- Whether a node has children is not known before it is expanded. Ids and values give no hint where to look.\n"
        "- Expanding a node a second time tells nothing new and wastes a turn."
    )
    reworded: ClassVar[Mapping[str, str]] = {
        "brief": (
            "Somewhere in a hidden tree a node holds the wanted value. You see the root; get_children shows a node's children and their "
            "values. Call done() once the wanted value is in sight.\n"
            "- Only nodes already shown can be expanded.\n"
            "- Leaves look like any other node until expanded. Ids and values give nothing away.\n"
            "- Expanding a node twice wastes a turn."
        ),
        "formal": (
            "Consider a rooted tree in which every node has an identifier and a value. Initially only the root is known. Expanding a known "
            "node by get_children makes its children known, together with their values. The task is complete as soon as a node with the "
            "wanted value is known, which is to be declared by done().\n"
            "- Expansion is defined on known nodes only.\n"
            "- A node without children cannot be recognised before its expansion. Identifiers and values are independent of the "
            "position in the tree.\n"
            "- A repeated expansion yields no information and is charged like any other."
        ),
    }
    example: ClassVar[Mapping[str, Any]] = {
        "root": "n52",
        "children": {"n52": ["n17", "n80"], "n80": ["n31"]},
        "values": {"n52": 40, "n17": 63, "n80": 12, "n31": 25},
        "wanted": 25,
    }

    def game(self, fields: Mapping[str, Any]) -> TreeGame:
        check_fields(fields, ("root", "children", "values", "wanted"))
        root, values = fields["root"], fields["values"]
        if not isinstance(values, Mapping) or not isinstance(fields["children"], Mapping):
            raise ValueError("'children' and 'values' must be objects from node id to the ids of its children and to its value")
        check_values(values.values(), "the nodes' values")
        check_values([fields["wanted"]], "'wanted'")
        if not isinstance(root, str):
            raise ValueError(f"'root' must be the id of a node, not {root!r}")
        children: dict[str, tuple[str, ...]] = {}
        parents: set[str] = set()
        for node, ids in fields["children"].items():
            if not isinstance(ids, (list, tuple)) or not set(map(type, ids)) <= {str}:
                raise ValueError(f"the children of node {node!r} must be a list of ids, not {ids!r}")
            children[node] = tuple(ids)
            for child in ids:
                if child in parents or child == root:
                    raise ValueError(f"node {child!r} {'is the root' if child == root else 'has a parent already'}: this is not a tree")
                parents.add(child)
        if lacking := [n for n in (root, *children, *sorted(parents)) if n not in values]:
            raise ValueError(f"node {lacking[0]!r} has no value in 'values'")
        return TreeGame(root, children, values, fields["wanted"])

    def draw(self, params: TreeParams, rng: random.Random) -> dict[str, Any]:
        """Grows a tree by hanging each node under a random one that has room; the wanted value is that of a random leaf.

        Ids and values are random numbers, all different, so they tell nothing of the shape.
        """
        top = max(100, 10 ** len(str(3 * params.nodes)))
        ids = [f"n{i}" for i in rng.sample(range(top), params.nodes)]
        values = rng.sample(range(top), params.nodes)
        children: dict[str, list[str]] = {ids[0]: []}
        roomy = [ids[0]]
        for node in ids[1:]:
            at = rng.randrange(len(roomy))
            siblings = children[roomy[at]]
            siblings.append(node)
            if len(siblings) == params.arity:
                roomy[at] = roomy[-1]
                roomy.pop()
            children[node] = []
            roomy.append(node)
        wanted = rng.choice([i for i, node in enumerate(ids) if not children[node]])
        # The ids are in the order of growth, which the payload, written in order of the ids, does not keep.
        return {
            "root": ids[0],
            "children": {n: children[n] for n in sorted(children)},
            "values": dict(sorted(zip(ids, values, strict=True))),
            "wanted": values[wanted],
        }
