"""The few words that commands say about a match beside the engine's own, in both languages."""

from typing import Final

from services.cli.main_options import Locale

_WORDS: Final[dict[str, tuple[str, str]]] = {
    "turn": ("Turn {0}", "第 {0} 回合"),
    "again": ("again: {0}", "再来一回合：{0}"),
    "rolls": ("rolls", "掷出"),
    "rerolls": ("rerolls", "重掷"),
    "acts": ("{0} acts at any time: {1}.", "{0} 随时行动：{1}。"),
    "nothing_offered": (
        "There is nothing that you may do at any time now.",
        "现在没有可随时使用的能力。",
    ),
    "none": ("nothing", "不选"),
    "standing.answered": ("Answered as you left word: {0} – {1}", "按你的预设回答：{0} – {1}"),
    "standing.left": (
        "From now on answered so, unasked (d: take it back): {0}",
        "今后照此回答，不再询问（d：撤回）：{0}",
    ),
    "standing.dropped": ("From now on you are asked again: {0}", "今后会再次询问：{0}"),
    "standing.list": (
        "You left word how these are to be answered; to be asked again, type:",
        "你已预设以下问题的回答；要恢复询问，请输入：",
    ),
    "standing.none": (
        "You have left no standing answers; s behind an answer leaves one.",
        "你没有预设回答；在答案后加 s 即可预设。",
    ),
    "standing.below": (" (while below {0})", "（仅当低于 {0} 时）"),
    "standing.passing": (
        "Next time this choice would mean something else, so it cannot be left as a standing "
        "answer; answer without s.",
        "这个选择下次含义会不同，不能作为预设回答；请去掉 s 再回答。",
    ),
    "kept": ("The match is kept: {0} --match {1}", "对局已保留：{0} --match {1}"),
    "unfinished": (
        "You have an unfinished match; go on with it by {0} --match {1}",
        "你有未完成的对局，可这样继续：{0} --match {1}",
    ),
    "no_seat": ("You have no seat in the match {0}.", "你在对局 {0} 中没有座位。"),
    "match": ("Match", "对局"),
    "waiting": (
        "Waiting for {0} more: diceledger play --match {1} …",
        "还差 {0} 人：diceledger play --match {1} …",
    ),
    "need_token": (
        "To play on a server you need a token: --token-file FILE.",
        "在服务器上对战需要令牌：--token-file FILE。",
    ),
    "no_token_file": ("There is no token file {0}.", "没有令牌文件 {0}。"),
    "you": ("You", "你"),
    "bot": ("Bot {0}", "机器人 {0}"),
    "who_begins": ("Who begins? The most ✊:", "谁先手？掷出 ✊ 最多者："),
    "legend.kings": (
        "♥ hearts: none left, and you are out   ⚡ energy: buys cards   ★ points: 20 win   ✊ hits",
        "♥ 心：没有就出局   ⚡ 能量：购买卡牌   ★ 分：20 分获胜   ✊ 攻击",
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
    "reason.last_survivor": ("The last monster standing.", "最后存活的怪兽。"),
    "reason.abandoned": ("It was given up before it began.", "对局未开始即被放弃。"),
    "looking_back": (
        "Looking back: the log alone gives the same states",
        "回放：仅凭日志即可重现同样的局面",
    ),
    "after_command": ("after command {0} of {1}", "第 {0} 条命令之后（共 {1} 条）"),
    "as_seen": ("state {0}… as it was seen", "局面 {0}… 与当时所见一致"),
    "verifying": ("Verifying: chain, rules, dice", "验证：哈希链、规则、骰子"),
    "promised": ("promised before the match: SHA-256 of the seed", "开局前的承诺：种子的 SHA-256"),
    "revealed": ("revealed after it: the seed", "终局后公开：种子"),
    "entropy": (
        "{0} of {1} seats committed to randomness of their own, and revealed it once all were "
        "seated: one honest seat among them, and nobody chose the dice. (Who runs the server holds "
        "the seed, and so can know them early.)",
        "{1} 个座位中有 {0} 个先承诺各自的随机数，坐满后才公布："
        "其中只要有一个诚实的座位，就没有人能挑选骰子。"
        "（服务器运营者持有种子，因此可以提前知道结果。）",
    ),
    "id.commitment": ("commitment to the seed ", "种子的承诺        "),
    "id.hash": ("hash of the last commit", "最后一次提交的哈希"),
    "id.committed": (
        "seats that committed to their entropy: {0} (of {1}); if one of them is honest, nobody "
        "chose the dice",
        "承诺过随机数的座位：{0}（共 {1} 个）；其中只要有一个诚实，就没有人能挑选骰子",
    ),
    "id.uncommitted": (
        "no seat committed to its entropy: whoever joined last, together with the operator, could "
        "have chosen the dice",
        "没有座位承诺过随机数：最后入座者若与运营者合谋，可能挑选骰子",
    ),
    "id.noted": (
        "To check this match later: diceledger verify FILE --commitment {0} --hash {1}",
        "日后验证本局：diceledger verify FILE --commitment {0} --hash {1}",
    ),
    "exporting": (
        "Exporting: the match as one file, checked without the server",
        "导出：整局保存为一个文件，无需服务器即可验证",
    ),
    "totals": (
        "{0} turns, {1} commands in the log, {2} facts, {3} s.",
        "{0} 回合，日志中 {1} 条命令，{2} 条事实，用时 {3} 秒。",
    ),
    "next": ("Next:", "接下来："),
    "next.keep": ("keeps the file of the match", "保留对局文件"),
    "next.play": ("lets you play against the bots", "与机器人对战"),
    "check.file": ("every byte is what was exported", "每个字节都与导出时一致"),
    "check.chain": (
        "no commit is missing, changed or out of order",
        "没有提交缺失、被改动或乱序",
    ),
    "check.admission": (
        "one log, one owner at a time, no command twice",
        "同一日志，同一时刻只有一个所有者，命令不重复",
    ),
    "check.rules": (
        "every turn, played again by the rules, gives the same",
        "按规则重演每个回合，结果相同",
    ),
    "check.dice": (
        "every die comes from the promised seed and what the seats brought",
        "每颗骰子都来自承诺的种子与各座位的随机数",
    ),
    "check.origin": (
        "it is the match of which these values were noted",
        "正是当时记下这些值的那一局",
    ),
    "check.read_model": (
        "what queries show is what the log says",
        "查询所见即日志所载",
    ),
    "reason.nobody_left": ("No monster is left.", "没有怪兽存活。"),
}


def say(locale: Locale, key: str, *values: object) -> str:
    """A phrase with its values; an end of a match that is not known here is shown as it is."""
    pair = _WORDS.get(key)
    if pair is None:
        return key.rpartition(".")[2].replace("_", " ") if key.startswith("reason.") else ""
    return pair[1 if locale == "zh" else 0].format(*values)
