"""The few words that commands say about a match beside the engine's own, in both languages."""

from typing import Final

from services.cli.main_options import Locale

_WORDS: Final[dict[str, tuple[str, str]]] = {
    "turn": ("Turn {0}", "第 {0} 回合"),
    "again": ("again: {0}", "再来一回合：{0}"),
    "rolls": ("rolls", "掷出"),
    "rerolls": ("rerolls", "重掷"),
    "begins": ("{0} begins.", "{0} 先手。"),
    "seed_revealed": (
        "The server's secret seed is revealed: {0}",
        "公开服务器的随机种子：{0}",
    ),
    "winners": ("{0} wins.", "{0} 获胜。"),
    "nobody_wins": ("Nobody wins.", "无人获胜。"),
    "and": (" and ", "、"),
    "monster": ("monster", "怪兽"),
    "place": ("place", "位置"),
    "cards": ("cards", "卡牌"),
    "for_sale": ("for sale:", "出售："),
    "out": ("out", "出局"),
    "reason.twenty_points": ("20 points.", "达到 20 分。"),
    "reason.last_monster": ("The last monster standing.", "最后存活的怪兽。"),
    "reason.last_survivor": ("The last monster standing.", "最后存活的怪兽。"),
    "reason.nobody_left": ("No monster is left.", "没有怪兽存活。"),
}


def say(locale: Locale, key: str, *values: object) -> str:
    """A phrase with its values; a key that nobody translated is shown as words."""
    pair = _WORDS.get(key)
    if pair is None:
        return key.rpartition(".")[2].replace("_", " ")
    return pair[1 if locale == "zh" else 0].format(*values)
