"""What a player may not do, said politely: a reason for programs and a sentence for people."""

from __future__ import annotations

from typing import Final

# reason: (English, Chinese); {detail} is filled by the place that refuses.
_SENTENCES: Final[dict[str, tuple[str, str]]] = {
    "ILLEGAL_ANSWER": ("This answer is not legal: {detail}.", "这个回答不合法：{detail}。"),
    "PROMPT_CLOSED": ("This question is no longer open.", "这个问题已经关闭。"),
    "NOT_YOUR_PROMPT": ("This question is not for this seat.", "这个问题不是问这个座位的。"),
    "ACTION_NOT_OFFERED": (
        "This seat cannot do that now.",
        "该座位现在不能这样做。",
    ),
    "NOT_IN_LOBBY": ("The match has already begun.", "对局已经开始。"),
    "MATCH_FULL": ("Every seat is taken.", "座位已满。"),
    "ALREADY_SEATED": ("This player already has a seat.", "该玩家已有座位。"),
    "SEAT_TAKEN": ("This seat is taken or does not exist.", "该座位已被占用或不存在。"),
    "NOT_ENOUGH_PLAYERS": ("Some seats are still free.", "还有空座位。"),
    "MATCH_NOT_STARTED": ("The match has not begun yet.", "对局尚未开始。"),
    "MATCH_FINISHED": ("The match is over.", "对局已结束。"),
    "UNKNOWN_GAME": ("There is no such game: {detail}.", "没有这个游戏：{detail}。"),
    "UNKNOWN_OPTION": ("There is no such option: {detail}.", "没有这个选项：{detail}。"),
    "BAD_OPTION_VALUE": (
        "This option cannot have that value: {detail}.",
        "选项不能取该值：{detail}。",
    ),
    "BAD_SEAT_COUNT": (
        "Not playable with that many seats: {detail}.",
        "不支持这个人数：{detail}。",
    ),
    "BAD_ENTROPY": (
        "Entropy is 16 to 64 bytes, or a commitment of 32; it must fit the seat's commitment.",
        "熵为 16 到 64 字节，或 32 字节的承诺；公布的熵须与承诺一致。",
    ),
    "ENTROPY_TOO_EARLY": (
        "Entropy is revealed once every seat is taken.",
        "所有座位坐满后才能公布熵。",
    ),
    "ENTROPY_MISSING": (
        "Seats have not revealed their entropy yet: {detail}.",
        "有座位尚未公布熵：{detail}。",
    ),
    "NOTHING_TO_REVEAL": (
        "This seat has no entropy to reveal, or has revealed it already.",
        "该座位没有待公布的熵，或已经公布。",
    ),
    "BAD_STANDING_ANSWER": (
        "This cannot be a standing answer: {detail}.",
        "不能作为预设回答：{detail}。",
    ),
    "BAD_NAME": ("A name has 1 to 40 printable characters.", "名字须为 1 到 40 个可显示字符。"),
}

REASONS: Final = tuple(sorted(_SENTENCES))


class Refusal(Exception):  # a refusal is an answer to a player, not an error of the program
    """A player's mistake. Nothing was changed.

    reason: UPPER_SNAKE, one of REASONS. field: the argument that was wrong, or "". detail: the rest
    of the sentence; detail_zh: in Chinese, where it is words. legal: what would have been accepted,
    where that is a list.
    """

    def __init__(
        self,
        reason: str,
        field: str = "",
        *,
        detail: str = "",
        detail_zh: str = "",
        legal: tuple[str, ...] = (),
    ) -> None:
        assert reason in _SENTENCES, reason
        self.reason = reason
        self.field = field
        self.detail = detail
        self.detail_zh = detail_zh or detail
        self.legal = legal
        super().__init__(f"{reason}: {self.message()}")

    def message(self, locale: str = "en") -> str:
        """One sentence for people, in English ("en") or Chinese ("zh")."""
        english, chinese = _SENTENCES[self.reason]
        in_chinese = locale.startswith("zh")
        template, detail = (chinese, self.detail_zh) if in_chinese else (english, self.detail)
        sentence = template.format(detail=detail)
        if not self.legal:
            return sentence
        shown = ", ".join(self.legal[:20])
        return f"{sentence} {'可选' if in_chinese else 'Legal'}: {shown}"
