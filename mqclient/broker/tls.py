"""Owns how the embedded broker speaks TLS: a context out of the settings that both doors know."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any


def server_context(settings: Mapping[str, Any]) -> ssl.SSLContext | None:
    """By `tlsCertificateFilePath` and `tlsKeyFilePath`; None: not at all.

    With `tlsTrustCertsFilePath` clients may show certificates, with `tlsRequireTrustedClientCertOnConnect` they must.
    """
    certificate, key = settings.get("tlsCertificateFilePath"), settings.get("tlsKeyFilePath")
    if not certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    trusted = settings.get("tlsTrustCertsFilePath")
    if trusted:
        context.load_verify_locations(trusted)
        required = settings.get("tlsRequireTrustedClientCertOnConnect", False)
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    return context
