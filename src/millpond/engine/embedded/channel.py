"""The one connection to Sail, which all channels share, since a later one could not be made.

gRPC gives channels of one address and equal options the same connection, as long as one is open.
"""

from __future__ import annotations

from typing import Any

# As PySpark allows.
_MESSAGE_BYTES = 128 * 1024 * 1024
# The longest that there is, which means that a connection is kept however little it is used.
_NEVER_MS = 2**31 - 1
_OPTIONS = (
    ("grpc.max_send_message_length", _MESSAGE_BYTES),
    ("grpc.max_receive_message_length", _MESSAGE_BYTES),
    ("grpc.client_idle_timeout_ms", _NEVER_MS),
    # A variable such as http_proxy must not send it by way of another machine.
    ("grpc.enable_http_proxy", 0),
)


def open_channel(address: tuple[str, int]) -> Any:
    """A channel to the server at this address."""
    import grpc

    host, port = address
    return grpc.insecure_channel(f"ipv4:{host}:{port}", options=_OPTIONS)
