"""Where processes of this host may meet others."""

import socket


def free_port() -> int:
    """A TCP port of this host that nobody listens on now."""
    with socket.socket() as free:
        free.bind(("", 0))
        return int(free.getsockname()[1])
