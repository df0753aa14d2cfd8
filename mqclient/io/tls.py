"""Owns the making of TLS contexts from options, and their checks."""

from __future__ import annotations

import ssl
from typing import NamedTuple

from mqclient.config import TLS
from mqclient.errors import ConfigError


class Encrypted(NamedTuple):
    """What `Address.tls` carries: the context, shared by all connections of a client, and the name to check."""

    context: ssl.SSLContext
    server_name: str | None = None


def encrypted(options: TLS) -> Encrypted:
    """Read the files that the options name and build the context; a ConfigError says which of them is wrong."""
    try:
        context = ssl.create_default_context(cafile=options.trust)
        if options.certificate is not None:
            context.load_cert_chain(options.certificate, options.key, options.key_password)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"the TLS options cannot be used: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = options.check_host_name and not options.insecure_trust_anyone
    if options.insecure_trust_anyone:
        context.verify_mode = ssl.CERT_NONE
    return Encrypted(context, options.server_name)
