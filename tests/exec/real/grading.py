"""Reward functions that tests let Ray Serve call."""

import time


def digits(request):
    """Share of the answer that is digits; behaves badly where the answer tells it to."""
    answer = request["answer"]
    if answer == "LATE":
        time.sleep(3.0)
    elif answer == "ERROR":
        raise ValueError("cannot grade this")
    elif answer == "GARBAGE":
        return "garbage"
    return sum(character.isdigit() for character in answer) / max(1, len(answer))


async def earned(request):
    """What the environment gave."""
    return request["earned"]


class Counter:
    """Counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, _):
        self.calls += 1
        return float(self.calls)


class Broken:
    """Cannot be made."""

    def __init__(self):
        raise RuntimeError("no data")


NUMBER = 3
