"""FrozenLake, and any environment of gymnasium with a discrete action space, as text."""

from collections.abc import Mapping
from typing import Any

import gymnasium

from rollart.exec.real.environments.protocol import Action, Observation


class Discrete:
    """A gymnasium environment with discrete actions, each named by a character; observations are their `str`."""

    def __init__(self, *, id: str, actions: str, arguments: Mapping[str, Any] | None = None) -> None:
        self._game: gymnasium.Env[Any, Any] = gymnasium.make(id, **(arguments or {}))
        space = self._game.action_space
        if not isinstance(space, gymnasium.spaces.Discrete) or space.n != len(actions):
            raise ValueError(f"{id} has the action space {space}; `actions` names {len(actions)}")
        self._start = int(space.start)
        self._actions = {name: index for index, name in enumerate(actions)}

    def reset(self, seed: int, member: int) -> Observation:
        """The first state, as text."""
        del member
        state, _ = self._game.reset(seed=seed)
        return Observation(text=self.describe(state))

    def step(self, action: Action) -> Observation:
        """Act; what is no action ends the episode."""
        index = self._actions.get(action.text.strip()[:1])
        if index is None:
            return Observation(text="", done=True)
        state, reward, terminated, truncated, _ = self._game.step(self._start + index)
        return Observation(text=self.describe(state), reward=float(reward), done=terminated or truncated)

    def close(self) -> None:
        """Close the game."""
        self._game.close()

    def describe(self, state: Any) -> str:
        """A state as text."""
        return f"{state}:"


class FrozenLake(Discrete):
    """Walk over the ice to the goal; a state is the row and the column, the first one shows the map as well."""

    def __init__(self, *, map: list[str] | None = None, size: int = 4, slippery: bool = False) -> None:
        options: dict[str, Any] = {"desc": map} if map else {"map_name": f"{size}x{size}"}
        super().__init__(id="FrozenLake-v1", actions="LDRU", arguments={**options, "is_slippery": slippery})
        unwrapped: Any = self._game.unwrapped
        self._columns = int(unwrapped.ncol)
        self._map = "\n".join(b"".join(row).decode() for row in unwrapped.desc)

    def reset(self, seed: int, member: int) -> Observation:
        """The map and where the agent stands."""
        first = super().reset(seed, member)
        return Observation(text=f"{self._map}\n{first.text}")

    def describe(self, state: Any) -> str:
        """Row and column."""
        row, column = divmod(int(state), self._columns)
        return f"{row},{column}:"
