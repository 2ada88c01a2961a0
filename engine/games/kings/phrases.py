"""Words that the King games share, in English and Chinese. Keys: see engine.core.text."""

from __future__ import annotations

from typing import Final

KINGS_PHRASES: Final[dict[str, tuple[str, str]]] = {
    # -- faces and other words ---------------------------------------------------------------------
    "word.one": ("1", "1"),
    "word.two": ("2", "2"),
    "word.three": ("3", "3"),
    "word.heart": ("heart", "心"),
    "word.energy": ("energy", "能量"),
    "word.smash": ("smash", "爪击"),
    "word.poison": ("poison", "中毒"),
    "word.shrink": ("shrink", "缩小"),
    "word.nothing": ("nothing", "无"),
    "word.outside": ("outside", "东京外"),
    "word.roll": ("a roll", "掷骰"),
    "word.heart_dice": ("heart dice", "心面骰子"),
    "word.energy_dice": ("energy dice", "能量骰子"),
    "word.set_of_one": ("a set of ones", "一组 1"),
    "word.set_of_two": ("a set of twos", "一组 2"),
    "word.set_of_three": ("a set of threes", "一组 3"),
    "word.eliminated": ("its owner is out", "拥有者出局"),
    "word.sweep": ("sweeping the cards", "更换卡牌"),
    "word.rolls_left_1": ("1 roll left", "还可掷 1 次"),
    "word.rolls_left_2": ("2 rolls left", "还可掷 2 次"),
    "word.rolls_left_3": ("3 rolls left", "还可掷 3 次"),
    "word.rolls_left_4": ("4 rolls left", "还可掷 4 次"),
    "word.last_survivor": ("the last monster standing", "最后的幸存者"),
    "word.nobody_left": ("nobody is left", "无人幸存"),
    "word.twenty_points": ("20 points", "20 分"),
    # -- options -----------------------------------------------------------------------------------
    "label.die": ("die {0}: {1}", "第 {0} 颗：{1}"),
    "label.ware": ("{0} for {1} energy", "{0}（{1} 能量）"),
    "label.holding": ("{0} of {s1}", "{s1} 的{0}"),
    "label.group": ("{0} ×{1}", "{0} ×{1}"),
    "label.hearts": ("{0}", "{0}"),
    "label.heal": ("heal {s0}", "治疗 {s0}"),
    "option.hearts:hearts": ("heal yourself", "治疗自己"),
    "option.hearts:poison": ("remove poison", "移除中毒标记"),
    "option.hearts:shrink": ("remove shrink", "移除缩小标记"),
    "option.sweep": ("sweep: 3 new cards for 2 energy", "付 2 能量换 3 张新牌"),
    # -- questions ---------------------------------------------------------------------------------
    "prompt.reroll": (
        "{seat}, which dice do you roll again? ({cause}; none: keep all)",
        "{seat}，重掷哪些骰子？（{cause}；不选则全部保留）",
    ),
    "prompt.roll_action": ("{seat}, use a card before going on?", "{seat}，继续前使用卡牌吗？"),
    "prompt.change_dice": ("{seat}, change your dice with a card?", "{seat}，用卡牌改变骰子吗？"),
    "prompt.change_thrown_dice": (
        "{seat}, use a card on the dice just thrown?",
        "{seat}，对刚掷出的骰子使用卡牌吗？",
    ),
    "prompt.change_probed_die": (
        "{seat}, use a card on the probed die?",
        "{seat}，对被探测的骰子使用卡牌吗？",
    ),
    "prompt.resolution_order": (
        "{seat}, in which order do you resolve your dice?",
        "{seat}，按什么顺序结算骰子？",
    ),
    "prompt.use_hearts": (
        "{seat}, what do you use your hearts for? ({low} to {high})",
        "{seat}，如何使用心面？（{low} 到 {high}）",
    ),
    "prompt.prevent_loss": (
        "{seat}, you are about to lose hearts: use a card?",
        "{seat}，你即将失去心：使用卡牌吗？",
    ),
    "prompt.before_end": (
        "{seat}, your turn is about to end: use a card?",
        "{seat}，回合即将结束：使用卡牌吗？",
    ),
    "prompt.before_energy_loss": (
        "{seat}, you are about to lose energy: use a card?",
        "{seat}，你即将失去能量：使用卡牌吗？",
    ),
    "prompt.buy": ("{seat}, what do you buy? (nothing: done)", "{seat}，购买什么？（不选则结束）"),
    # -- what happened -----------------------------------------------------------------------------
    "fact.first_player_rolled": (
        "{seat} rolls for the start: {faces}",
        "{seat} 掷骰定先手：{faces}",
    ),
    "fact.first_player_chosen": ("{seat} begins.", "{seat} 先手。"),
    "fact.turn_began": ("— Turn {turn}: {seat} —", "— 第 {turn} 回合：{seat} —"),
    "fact.dice_rolled": ("{seat} rolls {faces}", "{seat} 掷出 {faces}"),
    "fact.turn_began.*": (
        "— Turn {turn}: {seat} again ({cause}) —",
        "— 第 {turn} 回合：{seat} 额外回合（{cause}）—",
    ),
    "fact.dice_rerolled": (
        "{cause}: {by} rerolls dice {dice} of {seat}: {faces}",
        "{cause}：{by} 重掷 {seat} 的 {dice}：{faces}",
    ),
    "fact.hearts_lost.smash": (
        "{by} smashes {seat}: {amount:heart|hearts} lost.",
        "{by} 击中 {seat}：失去 {amount} 颗心。",
    ),
    "fact.dice_rerolled.roll": (
        "{seat} rerolls dice {dice}: {faces}",
        "{seat} 重掷 {dice}：{faces}",
    ),
    "fact.die_set": (
        "{cause}: {seat} turns die {die} to {face}.",
        "{cause}：{seat} 将第 {die} 颗变为 {face}。",
    ),
    "fact.dice_thrown": ("{cause}: {seat} throws {faces}", "{cause}：{seat} 掷出 {faces}"),
    "fact.smashes_added": (
        "{seat} adds {amount:smash|smashes} with cards.",
        "{seat} 的卡牌增加 {amount} 个爪击。",
    ),
    "fact.points_gained": (
        "{seat} gains {amount:point|points}: {cause}.",
        "{seat} 获得 {amount} 分：{cause}。",
    ),
    "fact.points_lost": (
        "{seat} loses {amount:point|points}: {cause}.",
        "{seat} 失去 {amount} 分：{cause}。",
    ),
    "fact.energy_gained": (
        "{seat} gains {amount} energy: {cause}.",
        "{seat} 获得 {amount} 能量：{cause}。",
    ),
    "fact.energy_lost": (
        "{seat} gives up {amount} energy: {cause}.",
        "{seat} 失去 {amount} 能量：{cause}。",
    ),
    "fact.energy_given": (
        "{seat} pays {receiver} {amount} energy: {cause}.",
        "{seat} 付给 {receiver} {amount} 能量：{cause}。",
    ),
    "fact.hearts_gained": (
        "{seat} gains {amount:heart|hearts}: {cause}.",
        "{seat} 获得 {amount} 颗心：{cause}。",
    ),
    "fact.hearts_lost": (
        "{seat} loses {amount:heart|hearts}: {cause}.",
        "{seat} 失去 {amount} 颗心：{cause}。",
    ),
    "fact.hearts_trimmed": (
        "{seat} loses {amount:heart|hearts} above its maximum.",
        "{seat} 超出上限的 {amount} 颗心被裁去。",
    ),
    "fact.tokens_put": (
        "{seat} gets {amount} {token}: {cause}.",
        "{seat} 得到 {amount} 个{token}标记：{cause}。",
    ),
    "fact.tokens_removed": (
        "{seat} gets rid of {amount} {token}.",
        "{seat} 移除 {amount} 个{token}标记。",
    ),
    "fact.monster_guarded": (
        "{cause}: {seat} loses no hearts this turn.",
        "{cause}：{seat} 本回合不失去心。",
    ),
    "fact.place_entered": ("{seat} enters {place}!", "{seat} 进入{place}！"),
    "fact.place_yielded": ("{seat} yields {place}.", "{seat} 撤离{place}。"),
    "fact.place_held": ("{seat} stays in {place}.", "{seat} 留在{place}。"),
    "fact.monster_moved": (
        "{seat} has to move to {place}: {cause}.",
        "{seat} 移到{place}：{cause}。",
    ),
    "fact.monster_reborn": (
        "{cause} {seat} is back with {hearts} hearts, without cards and points.",
        "{cause} {seat} 以 {hearts} 颗心重生，失去卡牌和分数。",
    ),
    "fact.monster_eliminated": ("{seat} is out of the game.", "{seat} 出局。"),
    "fact.card_revealed": ("New for sale: {card}.", "新上架：{card}。"),
    "fact.cards_swept": ("{seat} sweeps {cards} away.", "{seat} 换掉 {cards}。"),
    "fact.deck_peeked": (
        "{seat} looks at the top of the deck: {card}.",
        "{seat} 查看牌库顶：{card}。",
    ),
    "fact.deck_reshuffled": ("The discard pile becomes the new deck.", "弃牌堆洗成新牌库。"),
    "fact.card_bought": (
        "{seat} buys {card} for {price} energy.",
        "{seat} 以 {price} 能量购买{card}。",
    ),
    "fact.card_taken_over": (
        "{seat} buys {card} from {seller} for {price} energy.",
        "{seat} 以 {price} 能量向 {seller} 购买{card}。",
    ),
    "fact.card_discarded": ("{seat} discards {card}: {cause}.", "{seat} 弃掉{card}：{cause}。"),
    "fact.counter_set": (
        "{counter} left on {card} of {seat}.",
        "{seat} 的{card}上还有 {counter} 个。",
    ),
    "fact.card_copied": ("{seat} copies {card}.", "{seat} 复制{card}。"),
    "fact.extra_turn_granted": (
        "{seat} will take another turn: {cause}.",
        "{seat} 将再进行一回合：{cause}。",
    ),
    "fact.turn_cut_short": (
        "The turn of {seat} ends at once: {cause}.",
        "{seat} 的回合立即结束：{cause}。",
    ),
    "fact.match_ended": (
        "The match is over ({reason}). Winner: {winners}.",
        "对局结束（{reason}）。胜者：{winners}。",
    ),
}
