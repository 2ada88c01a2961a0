"""Makes the kernel's tiny test game playable through the services, for the length of a block.

It is in no catalogue and has no committed messages; both are lent to it here: the messages are
generated and compiled on the spot, exactly as those of the shipped games are.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc_tools
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from grpc_tools import protoc

from diceledger.facts.core.v1 import facts_pb2
from engine import GameState
from engine.core import catalogue as catalogue_module
from engine.core.game import AnyGame, Game
from services.common import factcodec, factgen, factschema, protogen
from tests.engine import high_roll

_AREA = "test_high_roll"


@contextmanager
def high_roll_installed(folder: Path) -> Iterator[AnyGame]:
    """The game can be found by its id, and its facts and state have messages."""
    game: Game[GameState] = high_roll.HIGH_ROLL  # type: ignore[assignment]  # one game of many
    find_area = factschema.area_of
    games = catalogue_module.catalogue
    codec = factcodec.codec()
    before = dict(codec.__dict__)

    def area_of(cls: type) -> str:
        # A message of the kernel that no shipped game uses is not among the committed ones.
        lent = cls.__module__ == high_roll.__name__ or (
            cls.__module__ == "engine.core.state" and not hasattr(facts_pb2, cls.__name__)
        )
        return _AREA if lent else find_area(cls)

    factschema.area_of = area_of
    factschema.shape_of.cache_clear()
    catalogue_module.catalogue = lambda: {**games(), game.id: game}  # type: ignore[assignment]  # uncached
    try:
        shapes = factschema.shapes_of((*factschema.engine_roots(), *game.facts, game.state))
        classes = _compiled(folder, shapes)
        mine = {s.full_name for s in shapes if s.area == _AREA}
        codec.__dict__.update(
            factcodec.Codec(
                shapes,
                lambda name: classes(name) if name in mine else factcodec._generated_class(name),
            ).__dict__
        )
        yield game
    finally:
        codec.__dict__.clear()
        codec.__dict__.update(before)
        catalogue_module.catalogue = games
        factschema.area_of = find_area
        factschema.shape_of.cache_clear()


class _Classes:
    def __init__(self, pool: descriptor_pool.DescriptorPool) -> None:
        self._pool = pool

    def __call__(self, full_name: str) -> type[Message]:
        return message_factory.GetMessageClass(self._pool.FindMessageTypeByName(full_name))


def _compiled(folder: Path, shapes: tuple[factschema.MessageShape, ...]) -> _Classes:
    """The message classes of the area, beside those that are generated already."""
    pool = descriptor_pool.Default()
    path = f"{factgen.area_folder(_AREA)}/facts.proto"
    try:
        pool.FindFileByName(path)
    except KeyError:
        locks = factgen.committed_locks(protogen.PROTO_ROOT)
        text = factgen.generated(shapes, locks)[_AREA][0]
        source = folder / path
        source.parent.mkdir(parents=True)
        source.write_text(text)
        output = folder / "descriptors"
        well_known = Path(grpc_tools.__file__).parent / "_proto"
        arguments = [f"-I{folder}", f"-I{protogen.PROTO_ROOT}", f"-I{well_known}"]
        assert protoc.main(["protoc", *arguments, f"--descriptor_set_out={output}", path]) == 0
        for file in descriptor_pb2.FileDescriptorSet.FromString(output.read_bytes()).file:
            pool.Add(file)
    return _Classes(pool)
