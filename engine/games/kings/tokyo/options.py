"""What can be chosen when a match is created; the numbers are the lines of NOTES.md section 2."""

from __future__ import annotations

from typing import Final

from engine.core.game import OptionSpec

_YES_NO: Final = ("true", "false")


def _option(
    id: str,  # noqa: A002  # the word that options use
    values: tuple[str, ...],
    summary: str,
    summary_zh: str,
) -> OptionSpec:
    """The first value is the default."""
    return OptionSpec(id, values, values[0], summary, summary_zh)


OPTIONS: Final[tuple[OptionSpec, ...]] = (
    _option(
        "tokyo_entry_rule",
        ("mandatory_step", "attack_required"),
        "Does a monster have to enter a free Tokyo in every turn, or only with a smash? (1, 2)",
        "进入空东京：每回合必须进入，还是需要至少一个爪击？",
    ),
    _option(
        "two_player_energy_variant",
        _YES_NO,
        "With two players Tokyo gives 1 energy instead of points. (3)",
        "两人局中东京给 1 点能量而不是分数。",
    ),
    _option(
        "bay_close_rule",
        ("move_to_city_if_empty", "must_leave"),
        "Where does the monster in the Bay go when the Bay closes? (4)",
        "东京湾关闭时，湾内怪兽去哪里？",
    ),
    _option(
        "bay_close_priority",
        ("bay_first", "attacker_first"),
        "The City's monster was just killed and the Bay closes: who takes the City? (5)",
        "市内怪兽刚被击杀且湾关闭：谁占领东京市？",
    ),
    _option(
        "bay_shift_on_city_yield",
        ("false", "true"),
        "When the City yields and the Bay stays, does the Bay's monster move to the City? (6)",
        "东京市撤离而湾内留守时，湾内怪兽是否移到市内？",
    ),
    _option(
        "first_player_rule",
        ("most_smashes", "random"),
        "Who begins: most smashes with six dice, ties again, or chance? (8)",
        "谁先手：掷出最多爪击者（平手重掷），还是随机？",
    ),
    _option(
        "dice_resolution_order",
        ("player_choice", "fixed"),
        "Does the player choose in which order the dice are resolved? (10)",
        "骰子结算顺序由玩家选择还是固定？",
    ),
    _option(
        "vp_win_check",
        ("any_turn_end", "own_turn_end"),
        "Do 20 points win at the end of any turn, or only of one's own? (11)",
        "20 分在任意回合结束时获胜，还是只在自己的回合结束时？",
    ),
    _option(
        "score_cap_20",
        _YES_NO,
        "Points beyond 20 are lost. (13)",
        "分数上限为 20。",
    ),
    _option(
        "poison_timing",
        ("own_turn_end", "own_turn_start"),
        "When does poison hurt? (14)",
        "中毒标记何时生效？",
    ),
    _option(
        "metamorph_refund",
        ("printed", "paid"),
        "Does selling a card give its printed cost or what was paid? (16)",
        "出售卡牌得到印刷费用还是实付费用？",
    ),
    _option(
        "friend_of_children_on_refund",
        ("false", "true"),
        "Does energy from selling cards count as a gain? (17)",
        "卖卡所得能量是否算作获得能量？",
    ),
    _option(
        "frenzy_timing",
        ("after_full_turn", "immediate"),
        "Is the turn finished before the bought extra turn? (18)",
        "购得的额外回合之前是否先完成本回合？",
    ),
    _option(
        "even_bigger_loss",
        ("clamp", "lose_two"),
        "Losing a bigger body: hearts above the maximum are cut, or 2 hearts are lost. (19)",
        "失去更大体型：裁到上限，还是失去 2 颗心？",
    ),
    _option(
        "death_from_above_when_inside",
        ("evict_all", "stars_only"),
        "What does the card do for a monster that is in Tokyo already? (20)",
        "已在东京时该卡有何效果？",
    ),
    _option(
        "rooting_when",
        ("own_turn", "any_turn"),
        "The reward of the last: at the end of one's own turn or of any. (21)",
        "垫底奖励：自己回合结束还是任意回合结束？",
    ),
    _option(
        "card_text_edition",
        ("2016", "first"),
        "Which printing's card effects are played. (22, 23)",
        "使用哪个版本的卡牌效果。",
    ),
    _option(
        "regeneration_boosts_healing_ray",
        ("false", "true"),
        "Does one's own faster healing also help those one heals? (24)",
        "自身再生是否也加强对他人的治疗？",
    ),
)

PRESETS: Final[dict[str, dict[str, str]]] = {
    "online": {},
    "classic": {
        "tokyo_entry_rule": "attack_required",
        "two_player_energy_variant": "false",
        "vp_win_check": "own_turn_end",
    },
}
DEFAULT_PRESET: Final = "online"
