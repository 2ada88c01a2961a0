"""Words of King of Tokyo and of the questions that its cards ask. Keys: see engine.core.text."""

from __future__ import annotations

from typing import Final

TOKYO_PHRASES: Final[dict[str, tuple[str, str]]] = {
    "word.tokyo_city": ("Tokyo City", "东京市"),
    "word.tokyo_bay": ("Tokyo Bay", "东京湾"),
    "word.entering_tokyo": ("entering Tokyo", "进入东京"),
    "word.starting_in_tokyo": ("starting in Tokyo", "在东京开始回合"),
    "word.bay_closed": ("the Bay is closed", "东京湾关闭"),
    "word.bay_shift": ("the City is free", "东京市空出"),
    "word.held_back": ("the loss waits for your choice", "损失待你选择后结算"),
    "option.stay": ("stay in Tokyo", "留在东京"),
    "option.yield": ("yield Tokyo", "撤离东京"),
    "fact.tokyo_laid": (
        "{seats} monsters with {hearts} hearts each look at Tokyo.",
        "{seats} 只各有 {hearts} 颗心的怪兽盯上了东京。",
    ),
    "prompt.yield_tokyo": ("{seat}, do you stay in Tokyo?", "{seat}，你要留在东京吗？"),
}
