"""A certificate authority for tests: one key of its own, certificates for whoever asks."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Writes PEM files into a directory, which is made."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("test authority")
        signed = self._sign(_name("test authority"), self._key, is_authority=True)
        # The certificate that others are to trust.
        self.cert = folder / "authority.pem"
        self.cert.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str) -> tuple[Path, Path]:
        """The files of a certificate for `name` (also as host name) and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        stem = name.replace(" ", "-")
        cert_file, key_file = self._folder / f"{stem}.pem", self._folder / f"{stem}.key"
        signed = self._sign(_name(name), key, is_authority=False)
        cert_file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return cert_file, key_file

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        host = subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.DNSName(str(host).replace(" ", "-"))]),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
