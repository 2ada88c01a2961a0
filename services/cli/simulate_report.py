"""The summary of a simulation for people."""

from collections.abc import Mapping
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from engine import Words, find_game
from services.cli.main_options import Locale
from services.cli.simulate_plan import Plan
from services.cli.simulate_tally import Tally, card_uses, share

_CARDS_SHOWN: Final = 12
_BAR_WIDTH: Final = 24


def show(
    out: Console, plan: Plan, tally: Tally, summary: Mapping[str, Any], locale: Locale
) -> None:
    """Print the summary."""
    _show_speed(out, plan, tally, summary)
    if not tally.matches:
        return
    _show_wins(out, tally)
    _show_ends(out, plan, tally, locale)
    _show_cards(out, plan, tally, locale)


def _show_speed(out: Console, plan: Plan, tally: Tally, summary: Mapping[str, Any]) -> None:
    game = find_game(plan.game)
    lengths = summary["turns_per_match"]
    checked = "[bold green]checked[/]" if plan.check and not tally.failures else "not checked"
    if tally.failures:
        checked = f"[bold red]{len(tally.failures)} failed[/]"
    out.print(
        f"[bold]{escape(game.name)}[/], {plan.players} players, bots: {', '.join(plan.bots)}, "
        f"seed {escape(plan.seed)}"
    )
    out.print(
        f"{tally.matches:,} matches, {tally.turns:,} turns, {tally.facts:,} facts in "
        f"{summary['seconds']:,.1f} s; {checked}"
    )
    out.print(
        f"[bold]{summary['turns_per_second']:,.0f}[/] turns/s, "
        f"{summary['matches_per_second']:,.1f} matches/s; turns in a match: "
        f"{lengths['mean']:.1f} on average, half at most {lengths['median']}, "
        f"nine in ten at most {lengths['p90']}, from {lengths['low']} to {lengths['high']}"
    )


def _show_wins(out: Console, tally: Tally) -> None:
    table = _table("who wins", "matches", "won", "")
    for seat in sorted(tally.seats):
        won, played = tally.seat_wins[seat], tally.seats[seat]
        table.add_row(f"seat {seat}", f"{played:,}", *_share(won, played))
    if len(tally.bots) > 1:
        for kind in sorted(tally.bots):
            part = share(tally.bots[kind], tally.bots.total())
            label = f"{kind} bots ({part:.0%} of the seats)"
            table.add_row(label, f"{tally.matches:,}", *_share(tally.bot_wins[kind], tally.matches))
    nobody = tally.matches - tally.seat_wins.total()
    if nobody:
        table.add_row("nobody", f"{tally.matches:,}", *_share(nobody, tally.matches))
    out.print(table)


def _show_ends(out: Console, plan: Plan, tally: Tally, locale: Locale) -> None:
    words = Words(find_game(plan.game), None, locale)
    table = _table("how it ends", "matches", "share", "")
    for reason, count in tally.reasons.most_common():
        table.add_row(words.word(reason), f"{count:,}", *_share(count, tally.matches))
    out.print(table)


def _show_cards(out: Console, plan: Plan, tally: Tally, locale: Locale) -> None:
    uses = card_uses(plan.game, tally)
    if not tally.bought:
        return
    table = _table("card", "bought", "per match", "held by winner")
    shown = uses if len(uses) <= 2 * _CARDS_SHOWN else [*uses[:_CARDS_SHOWN], *uses[-3:]]
    for index, each in enumerate(shown):
        if index == _CARDS_SHOWN and len(shown) < len(uses):
            table.add_row("…", "", "", "")
        table.add_row(
            escape(each.name_zh if locale == "zh" else each.name),
            f"{each.bought:,}",
            f"{each.bought / tally.matches:.2f}",
            f"{share(each.held_by_winner, tally.matches):.1%}",
        )
    out.print(table)


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2), show_header=True, header_style="dim")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if 0 < index < 3 else "left")
    return table


def _share(part: int, whole: int) -> tuple[str, str]:
    value = share(part, whole)
    return f"{value:.1%}", f"[cyan]{'█' * round(value * _BAR_WIDTH)}[/]"
