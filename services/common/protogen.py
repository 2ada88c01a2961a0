"""Generates the Python code of every file under proto/: a developer's task, not for production.

Run as ``python -m services.common.protogen``; with ``--check`` it writes nothing and exits 1 when
a committed file differs from what would be generated. Needs the ``dev`` extra (grpcio-tools,
mypy-protobuf).
"""

import argparse
import filecmp
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from google.rpc import status_pb2

PROTO_ROOT = Path(__file__).resolve().parents[2] / "proto"
_GENERATED = ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py", "_pb2_grpc.pyi")


def generate(target: Path) -> list[Path]:
    """Write the generated code of all protos below `target`; return the paths, relative to it.

    Raises subprocess.CalledProcessError when the compiler refuses a file; its message is on
    standard error.
    """
    sources = sorted(PROTO_ROOT.rglob("*.proto"))
    common_protos = Path(status_pb2.__file__).parents[2]
    target.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"-I{PROTO_ROOT}",
        f"-I{common_protos}",
        f"--python_out={target}",
        f"--mypy_out=quiet:{target}",
        *(str(path) for path in sources),
    ]
    environment_path = str(Path(sys.executable).parent)
    _run(command, environment_path)
    services = [path for path in sources if "\nservice " in path.read_text(encoding="utf-8")]
    grpc = [f"--grpc_python_out={target}", f"--mypy_grpc_out=quiet:{target}"]
    _run([*command[:5], *grpc, *(str(path) for path in services)], environment_path)
    return sorted(p.relative_to(target) for p in target.rglob("*") if p.name.endswith(_GENERATED))


def _run(command: list[str], path: str) -> None:
    # The mypy plug-ins are programs beside the interpreter; protoc finds them on PATH.
    subprocess.run(command, check=True, env={"PATH": f"{path}:/usr/bin:/bin"})  # noqa: S603


def differences() -> list[Path]:
    """Generated files, relative to proto/, that are missing, stale or left over."""
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch)
        wanted = generate(fresh)
        committed = [p for p in PROTO_ROOT.rglob("*") if p.name.endswith(_GENERATED)]
        extra = {p.relative_to(PROTO_ROOT) for p in committed} - set(wanted)
        stale = {
            path
            for path in wanted
            if not (PROTO_ROOT / path).exists()
            or not filecmp.cmp(fresh / path, PROTO_ROOT / path, shallow=False)
        }
        return sorted(extra | stale)


def write() -> None:
    """Write the generated code of all protos beside them, and take away what no proto makes."""
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch)
        wanted = generate(fresh)
        for path in wanted:
            shutil.copyfile(fresh / path, PROTO_ROOT / path)
        for path in PROTO_ROOT.rglob("*"):
            if path.name.endswith(_GENERATED) and path.relative_to(PROTO_ROOT) not in wanted:
                path.unlink()


def main() -> int:
    """Command-line entry: generate, or compare with ``--check``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 on drift")
    if parser.parse_args().check:
        stale = differences()
        for path in stale:
            sys.stderr.write(f"proto/{path} is not what its .proto generates; run protogen\n")
        return 1 if stale else 0
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
