"""Games of textarena for one player, as text."""

import textarena

from rollart.exec.real.environments.protocol import Action, Observation


class TextGame:
    """One game; the reward is what the game gives its player in the end."""

    def __init__(self, *, id: str) -> None:
        self._game = textarena.make(env_id=id)

    def reset(self, seed: int, member: int) -> Observation:
        """Begin a game."""
        del member
        self._game.reset(num_players=1, seed=seed)
        return Observation(text=self._seen())

    def step(self, action: Action) -> Observation:
        """Make a move."""
        done, _ = self._game.step(action=action.text)
        if not done:
            return Observation(text=self._seen())
        rewards, _ = self._game.close()
        return Observation(text="", reward=float(rewards.get(0, 0.0)), done=True)

    def _seen(self) -> str:
        _, observation = self._game.get_observation()
        return str(observation)

    def close(self) -> None:
        """Nothing outlives a game."""
