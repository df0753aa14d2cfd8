"""The settings of TLS, as both doors read them."""

from __future__ import annotations

import ssl
from pathlib import Path

from mqclient.broker.tls import server_context
from tests.support import certificates


def test_a_context_by_what_is_given(tmp_path: Path) -> None:
    assert server_context({}) is None
    made = certificates.make(tmp_path)
    given = {"tlsCertificateFilePath": made.certificate, "tlsKeyFilePath": made.key}
    trusting = given | {"tlsTrustCertsFilePath": made.authority}
    contexts = [server_context(chosen) for chosen in (given, trusting)]
    contexts.append(server_context({**trusting, "tlsRequireTrustedClientCertOnConnect": True}))
    assert [context and context.verify_mode for context in contexts] == [
        ssl.CERT_NONE,
        ssl.CERT_OPTIONAL,
        ssl.CERT_REQUIRED,
    ]
