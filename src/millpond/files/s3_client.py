"""Clients of S3, and of what speaks like it: address, region and credentials.

What the options and the environment do not say is found by botocore, as by every client of AWS:
profiles, single sign-on, roles of machines and containers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

_TIMEOUTS_S = {"connect_timeout": 10, "read_timeout": 60}
# A client is made anew where one of these has changed.
_VARIABLES = (
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
)


def s3_client(options: Mapping[str, str]) -> Any:
    """A client, the same one for the same settings.

    Args:
        options: `fs.s3a.*`, which come before the environment.

    Raises:
        botocore.exceptions.BotoCoreError: The settings are incomplete, or contradict each other.
        ValueError: The address is none.
    """
    settings = {name: value for name in _VARIABLES if (value := os.environ.get(name))}
    return _client(frozenset({**settings, **options}.items()))


@lru_cache(maxsize=32)
def _client(of_client: frozenset[tuple[str, str]]) -> Any:
    from botocore import UNSIGNED
    from botocore.config import Config
    from botocore.session import Session

    settings = dict(of_client)
    session = Session()
    # Half of the time that a listing takes here would go into times.
    parsers = session.get_component("response_parser_factory")
    parsers.set_parser_defaults(timestamp_parser=_timestamp)
    if "fs.s3a.access.key" in settings:
        session.set_credentials(
            settings["fs.s3a.access.key"],
            settings.get("fs.s3a.secret.key", ""),
            settings.get("fs.s3a.session.token"),
        )
    region = _first(settings, "fs.s3a.endpoint.region", "AWS_REGION", "AWS_DEFAULT_REGION")
    config = Config(
        **_TIMEOUTS_S,
        retries={"mode": "standard"},
        s3={"addressing_style": _addressing(settings)},
        # Others that speak like S3 know no newer checksums.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        # Buckets that everybody may read need no credentials.
        signature_version=None if session.get_credentials() else UNSIGNED,
    )
    return session.create_client(
        "s3",
        endpoint_url=_endpoint(settings),
        region_name=region or session.get_config_variable("region") or "us-east-1",
        config=config,
    )


def _timestamp(text: str) -> datetime:
    from botocore.utils import parse_timestamp

    try:
        found = datetime.fromisoformat(text)
    except ValueError:  # as headers have it
        found = parse_timestamp(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _endpoint(settings: Mapping[str, str]) -> str | None:
    address = _first(settings, "fs.s3a.endpoint", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    if address is None:
        return None
    scheme, separator, host = address.partition("://")
    is_plain = settings.get("fs.s3a.connection.ssl.enabled", "").lower() == "false"
    is_plain = is_plain or (bool(separator) and scheme == "http")
    return f"{'http' if is_plain else 'https'}://{(host if separator else address).rstrip('/')}"


def _addressing(settings: Mapping[str, str]) -> str:
    """How the bucket is told; by the path where there is an address, unless asked otherwise."""
    by_path = settings.get("fs.s3a.path.style.access", "").lower()
    return {"true": "path", "false": "virtual"}.get(by_path, "auto")


def _first(settings: Mapping[str, str], *names: str) -> str | None:
    return next((settings[name] for name in names if settings.get(name)), None)
