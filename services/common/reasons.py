"""The full table of refusal reasons: code, meaning, and whether sending again is safe.

Documentation and tests list it; a reason is never renamed, because programs decide by it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from grpc import StatusCode

Locale = Literal["en", "zh"]


@dataclass(frozen=True, slots=True)
class Reason:
    """One row: the reason as programs see it, its gRPC code, what it means for people."""

    reason: str
    code: StatusCode
    meaning: str
    meaning_zh: str
    # The same request with the same request id may be sent again and may then succeed.
    retry: bool = False


_ROWS: Final = (
    # Who calls.
    Reason("TOKEN_MISSING", StatusCode.UNAUTHENTICATED, "A bearer token is needed.", "需要令牌。"),
    Reason("TOKEN_INVALID", StatusCode.UNAUTHENTICATED, "The token is not valid.", "令牌无效。"),
    Reason("TOKEN_EXPIRED", StatusCode.UNAUTHENTICATED, "The token has expired.", "令牌已过期。"),
    # What the caller may do.
    Reason(
        "NOT_YOUR_PROMPT",
        StatusCode.PERMISSION_DENIED,
        "This prompt is not for you.",
        "这个问题不是问你的。",
    ),
    Reason(
        "NOT_HOST",
        StatusCode.PERMISSION_DENIED,
        "Only the host of the match may do this.",
        "只有房主可以这样做。",
    ),
    Reason(
        "NOT_A_PLAYER",
        StatusCode.PERMISSION_DENIED,
        "You have no seat in this match.",
        "你不在这局游戏中。",
    ),
    Reason(
        "ROLE_REQUIRED",
        StatusCode.PERMISSION_DENIED,
        "Your token lacks the role for this.",
        "你的令牌没有所需的角色。",
    ),
    # What is not there.
    Reason("MATCH_NOT_FOUND", StatusCode.NOT_FOUND, "There is no such match.", "没有这局游戏。"),
    # What came too late.
    Reason(
        "PROMPT_CLOSED",
        StatusCode.ABORTED,
        "This prompt is no longer open; look at the match again.",
        "这个问题已经关闭，请重新查看牌局。",
    ),
    Reason(
        "ACTION_NOT_OFFERED",
        StatusCode.ABORTED,
        "Your seat cannot do this now; look at the match again.",
        "你的座位现在不能这样做，请重新查看牌局。",
    ),
    Reason(
        "NOT_APPLIED",
        StatusCode.ABORTED,
        "The command was not applied; sending it again is safe.",
        "命令未生效，可以安全重发。",
        retry=True,
    ),
    # Bad input.
    Reason(
        "ILLEGAL_ANSWER",
        StatusCode.INVALID_ARGUMENT,
        "The prompt does not allow this answer.",
        "这个回答不合规则。",
    ),
    Reason(
        "BAD_REQUEST_ID",
        StatusCode.INVALID_ARGUMENT,
        "request_id must be 1 to 64 characters of A-Z a-z 0-9 . _ : -",
        "request_id 须为 1 至 64 个字符（A-Z a-z 0-9 . _ : -）。",
    ),
    Reason(
        "BAD_MATCH_ID",
        StatusCode.INVALID_ARGUMENT,
        "match_id must be 26 characters of a-z 2-7.",
        "match_id 须为 26 个字符（a-z 2-7）。",
    ),
    Reason(
        "BAD_REQUEST",
        StatusCode.INVALID_ARGUMENT,
        "The request lacks something that it needs.",
        "请求缺少必要的内容。",
    ),
    Reason(
        "BAD_SEAT",
        StatusCode.INVALID_ARGUMENT,
        "There is no such seat at this table.",
        "没有这个座位。",
    ),
    Reason(
        "BAD_SEAT_COUNT",
        StatusCode.INVALID_ARGUMENT,
        "The game cannot be played by that many.",
        "这个游戏不支持该人数。",
    ),
    Reason(
        "BAD_OPTION_VALUE",
        StatusCode.INVALID_ARGUMENT,
        "The option does not have this value.",
        "选项没有这个取值。",
    ),
    Reason(
        "BAD_ENTROPY",
        StatusCode.INVALID_ARGUMENT,
        "entropy is 16 to 64 bytes, or a commitment of 32, and must fit the seat's commitment.",
        "entropy 须为 16 至 64 字节，或 32 字节的承诺，且须与座位的承诺一致。",
    ),
    Reason(
        "BAD_NAME",
        StatusCode.INVALID_ARGUMENT,
        "The name must be 1 to 40 printable characters.",
        "名字须为 1 至 40 个可见字符。",
    ),
    Reason(
        "BAD_STANDING_ANSWER",
        StatusCode.INVALID_ARGUMENT,
        "This cannot be a standing answer.",
        "不能作为预设回答。",
    ),
    Reason(
        "BAD_TIMEOUT",
        StatusCode.INVALID_ARGUMENT,
        "The answer timeout is out of range.",
        "回答时限超出范围。",
    ),
    Reason(
        "BAD_SEQUENCE",
        StatusCode.INVALID_ARGUMENT,
        "The sequence must be a whole number from 0.",
        "序号须为不小于 0 的整数。",
    ),
    Reason(
        "BAD_POSITION",
        StatusCode.INVALID_ARGUMENT,
        "The position is none that a receipt carried.",
        "位置标记无效。",
    ),
    Reason(
        "BAD_PAGE_SIZE",
        StatusCode.INVALID_ARGUMENT,
        "page_size must be 0 to 200.",
        "page_size 须为 0 至 200。",
    ),
    Reason(
        "BAD_PAGE_TOKEN",
        StatusCode.INVALID_ARGUMENT,
        "The page token is none that a reply carried.",
        "分页标记无效。",
    ),
    Reason("BAD_VIEWER", StatusCode.INVALID_ARGUMENT, "There is no such viewer.", "没有这个视角。"),
    Reason("UNKNOWN_GAME", StatusCode.INVALID_ARGUMENT, "There is no such game.", "没有这个游戏。"),
    Reason(
        "UNKNOWN_OPTION",
        StatusCode.INVALID_ARGUMENT,
        "The game has no such option.",
        "游戏没有这个选项。",
    ),
    Reason(
        "UNKNOWN_EXPANSION",
        StatusCode.INVALID_ARGUMENT,
        "The game has no such expansion.",
        "游戏没有这个扩展。",
    ),
    Reason(
        "UNKNOWN_PRESET",
        StatusCode.INVALID_ARGUMENT,
        "The game has no such preset.",
        "游戏没有这个预设。",
    ),
    # What is there already.
    Reason(
        "ALREADY_SEATED",
        StatusCode.ALREADY_EXISTS,
        "You have a seat in this match already.",
        "你已在这局游戏中入座。",
    ),
    Reason(
        "SEAT_TAKEN", StatusCode.ALREADY_EXISTS, "Another player has this seat.", "座位已被占用。"
    ),
    Reason(
        "REQUEST_ID_REUSED",
        StatusCode.ALREADY_EXISTS,
        "This request_id was used before with another content.",
        "该 request_id 已用于不同的内容。",
    ),
    # What the match is not ready for.
    Reason("MATCH_FULL", StatusCode.FAILED_PRECONDITION, "Every seat is taken.", "座位已满。"),
    Reason(
        "NOT_ENOUGH_PLAYERS",
        StatusCode.FAILED_PRECONDITION,
        "There are free seats.",
        "还有空座位。",
    ),
    Reason(
        "ENTROPY_TOO_EARLY",
        StatusCode.FAILED_PRECONDITION,
        "Entropy is revealed once every seat is taken.",
        "所有座位坐满后才能公布 entropy。",
    ),
    Reason(
        "ENTROPY_MISSING",
        StatusCode.FAILED_PRECONDITION,
        "Seats have not revealed their entropy yet.",
        "有座位尚未公布 entropy。",
    ),
    Reason(
        "NOTHING_TO_REVEAL",
        StatusCode.FAILED_PRECONDITION,
        "The seat has no entropy to reveal, or has revealed it already.",
        "该座位没有待公布的 entropy，或已经公布。",
    ),
    Reason(
        "NOT_IN_LOBBY",
        StatusCode.FAILED_PRECONDITION,
        "The match has started already.",
        "游戏已经开始。",
    ),
    Reason(
        "MATCH_NOT_STARTED",
        StatusCode.FAILED_PRECONDITION,
        "The match has not started yet.",
        "游戏尚未开始。",
    ),
    Reason(
        "MATCH_FINISHED", StatusCode.FAILED_PRECONDITION, "The match is over.", "游戏已经结束。"
    ),
    Reason(
        "MATCH_NOT_FINISHED",
        StatusCode.FAILED_PRECONDITION,
        "The match is still being played.",
        "游戏尚未结束。",
    ),
    Reason(
        "MATCH_FROZEN",
        StatusCode.FAILED_PRECONDITION,
        "The match is halted: its record cannot be continued. An operator has to look at it.",
        "游戏已冻结：记录无法继续，需要管理员处理。",
    ),
    # Limits.
    Reason(
        "TOO_MANY_IN_FLIGHT",
        StatusCode.RESOURCE_EXHAUSTED,
        "Too many commands are being worked on; try again in a moment.",
        "处理中的命令过多，请稍后再试。",
        retry=True,
    ),
    Reason(
        "TOO_MANY_WATCHERS",
        StatusCode.RESOURCE_EXHAUSTED,
        "Too many watch streams are open.",
        "观看者过多。",
    ),
    Reason(
        "TOO_MANY_CALLS",
        StatusCode.RESOURCE_EXHAUSTED,
        "Too many calls are open; end some first.",
        "打开的调用过多，请先结束一些。",
    ),
    Reason(
        "TOO_MANY_MATCHES",
        StatusCode.RESOURCE_EXHAUSTED,
        "This process holds as many matches as it may; try again later.",
        "进行中的游戏过多，请稍后再试。",
        retry=True,
    ),
    Reason(
        "TOO_MANY_CHANGES",
        StatusCode.RESOURCE_EXHAUSTED,
        "This seat changed its standing answers too often; wait for the next turn.",
        "预设回答修改过于频繁，请等到下一回合。",
    ),
    Reason(
        "MESSAGE_TOO_LARGE",
        StatusCode.RESOURCE_EXHAUSTED,
        "The message is larger than the server accepts.",
        "消息过大。",
    ),
    Reason(
        "SLOW_WATCHER",
        StatusCode.RESOURCE_EXHAUSTED,
        "You read too slowly; watch again from next_sequence.",
        "读取过慢，请从 next_sequence 继续观看。",
        retry=True,
    ),
    # What is down or catching up.
    Reason(
        "NO_OWNER",
        StatusCode.UNAVAILABLE,
        "No process serves this match at the moment; try again.",
        "当前没有进程负责这局游戏，请重试。",
        retry=True,
    ),
    Reason(
        "LOG_UNAVAILABLE",
        StatusCode.UNAVAILABLE,
        "The log cannot be reached; try again.",
        "日志不可用，请重试。",
        retry=True,
    ),
    Reason(
        "VIEWS_UNAVAILABLE",
        StatusCode.UNAVAILABLE,
        "The read model cannot be reached; try again.",
        "查询视图不可用，请重试。",
        retry=True,
    ),
    Reason(
        "VIEWS_BEHIND",
        StatusCode.UNAVAILABLE,
        "The read model has not got that far yet; try again.",
        "查询视图尚未更新到该位置，请重试。",
        retry=True,
    ),
    Reason(
        "SHUTTING_DOWN",
        StatusCode.UNAVAILABLE,
        "This process is stopping; try again with another.",
        "进程正在停止，请重试。",
        retry=True,
    ),
    Reason(
        "STREAM_TOO_LONG",
        StatusCode.UNAVAILABLE,
        "This stream may not last longer; open it again.",
        "此流的时间已到，请重新打开。",
        retry=True,
    ),
    Reason(
        "SEQUENCE_OUT_OF_RANGE",
        StatusCode.OUT_OF_RANGE,
        "The match has no commit with this sequence.",
        "这局游戏没有该序号的记录。",
    ),
    Reason(
        "INTERNAL",
        StatusCode.INTERNAL,
        "Something went wrong on our side.",
        "服务器内部出错。",
    ),
    # Said by the transport, not by a service; `parse_error` names them.
    Reason(
        "CONNECTION_LOST",
        StatusCode.UNAVAILABLE,
        "The server cannot be reached.",
        "无法连接服务器。",
        retry=True,
    ),
    Reason(
        "DEADLINE_EXCEEDED",
        StatusCode.DEADLINE_EXCEEDED,
        "The reply took longer than the caller would wait; whether the command was applied is "
        "unknown, sending it again is safe.",
        "等待超时；命令是否生效未知，可以安全重发。",
        retry=True,
    ),
    Reason("CANCELLED", StatusCode.CANCELLED, "The call was cancelled.", "调用已取消。"),
    Reason(
        "UNIMPLEMENTED",
        StatusCode.UNIMPLEMENTED,
        "The server does not know this call.",
        "服务器不支持该调用。",
    ),
)

# Every reason, by its name, in the order of the documentation.
REASONS: Final[Mapping[str, Reason]] = MappingProxyType({row.reason: row for row in _ROWS})
