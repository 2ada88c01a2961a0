"""`diceledger cards`: every card of a game, its wording, its sources and what proves it right."""

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from engine import AnyGame, Card
from services.cli.demo_cast import known_game
from services.cli.main_guard import CommandFailed
from services.cli.main_options import JsonOption, Locale, LocaleOption
from services.cli.render_console import console, print_json
from services.cli.scenario_covers import covers
from services.cli.scenario_text import ScenarioError

_DEFAULT_GAME: Final = "king_of_tokyo"
_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "keep": ("keep", "保留"),
    "discard": ("discard", "弃置"),
    "cost": ("cost", "费用"),
    "copies": ("copies", "张数"),
    "wording": ("wording", "效果"),
    "scenarios": ("scenarios", "场景"),
    "sources": ("sources", "来源"),
    "tokens": ("comes with tokens", "附带标记"),
    "asks": ("asks", "提问"),
    "with": ("with {0}={1}", "当 {0}={1} 时"),
    "energy": ("{0} energy", "{0} 点能量"),
    "none": ("none is installed", "未安装"),
    "total": ("{0} different cards, {1} in the deck", "{0} 种卡牌，牌库共 {1} 张"),
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="cards", rich_help_panel="Games")(_cards)


def _cards(
    game: Annotated[
        str, typer.Option("--game", metavar="GAME", help="`diceledger games` lists them.")
    ] = _DEFAULT_GAME,
    card: Annotated[str, typer.Option("--card", metavar="ID", help="Show one card in full.")] = "",
    locale: LocaleOption = "en",
    json: JsonOption = False,
) -> None:
    """List the cards of a game, with the scenarios that cover each."""
    known = known_game(game)
    chosen = [_find(known, card)] if card else list(known.cards.values())
    try:
        entries = [_entry(known, each) for each in chosen]
    except ScenarioError as error:
        raise CommandFailed(f"The scenarios cannot be read: {error}") from error
    if json:
        print_json({"game": known.id, "cards": entries})
        return
    out = console()
    if card:
        _show_one(out, entries[0], locale)
    else:
        _show_all(out, entries, locale)


def _find(game: AnyGame, card_id: str) -> Card[Any]:
    card = game.cards.get(card_id)
    if card is not None:
        return card
    near = difflib.get_close_matches(card_id, list(game.cards), n=3, cutoff=0.5)
    instead = f" Did you mean {', '.join(near)}?" if near else ""
    raise CommandFailed(f"{game.name} has no card {card_id!r}.{instead}")


def _entry(game: AnyGame, card: Card[Any]) -> dict[str, Any]:
    """A card as a JSON object. variants: what is different under a value of an option."""
    return {
        "id": card.id,
        "name": card.name,
        "name_zh": card.name_zh,
        "kind": card.kind,
        "cost": card.cost,
        "copies": card.copies,
        "tokens": card.tokens,
        "text": card.text,
        "text_zh": card.text_zh,
        "variants": _variants(card),
        "asks": {key: {"en": en, "zh": zh} for key, (en, zh) in card.asks.items()},
        "sources": list(card.sources),
        "scenarios": covers(card.id, game.id),
    }


def _variants(card: Card[Any]) -> list[dict[str, Any]]:
    variants: list[dict[str, Any]] = []
    for option, value in sorted({*card.cost_under, *card.text_under}):
        text, text_zh = card.text_under.get((option, value), (card.text, card.text_zh))
        variants.append(
            {
                "option": option,
                "value": value,
                "cost": card.cost_under.get((option, value), card.cost),
                "text": text,
                "text_zh": text_zh,
            }
        )
    return variants


# -- for people ------------------------------------------------------------------------------------


def _say(locale: Locale, key: str, *words: object) -> str:
    pair = _WORDS.get(key)
    return key if pair is None else pair[locale == "zh"].format(*words)


def _wording(entry: Mapping[str, Any], locale: Locale) -> tuple[str, str]:
    """Name and text in a language."""
    ending = "_zh" if locale == "zh" else ""
    return entry[f"name{ending}"], entry[f"text{ending}"]


def _show_all(out: Console, entries: list[dict[str, Any]], locale: Locale) -> None:
    for kind in dict.fromkeys(entry["kind"] for entry in entries):
        some = [entry for entry in entries if entry["kind"] == kind]
        table = Table(box=None, padding=(0, 1), show_header=True, header_style="dim")
        table.add_column(f"[bold]{_say(locale, kind)}[/]", no_wrap=True)
        table.add_column(_say(locale, "cost"), justify="right")
        table.add_column(_say(locale, "wording"), ratio=1)
        table.add_column(_say(locale, "scenarios"), justify="right")
        for entry in some:
            name, text = _wording(entry, locale)
            copies = f" ×{entry['copies']}" if entry["copies"] > 1 else ""
            table.add_row(
                f"[bold]{escape(name)}[/]{copies}\n[dim]{entry['id']}[/]",
                str(entry["cost"]),
                escape(text),
                str(len(entry["scenarios"])),
            )
        out.print(table)
    copies = sum(entry["copies"] for entry in entries)
    out.print(f"[dim]{_say(locale, 'total', len(entries), copies)}[/]")


def _show_one(out: Console, entry: Mapping[str, Any], locale: Locale) -> None:
    name, text = _wording(entry, locale)
    other = _wording(entry, "en" if locale == "zh" else "zh")[0]
    out.print(f"[bold]{escape(name)}[/]  {escape(other)}  [dim]{entry['id']}[/]")
    price = _say(locale, "energy", entry["cost"])
    out.print(
        f"{price}, {_say(locale, entry['kind'])}, {_say(locale, 'copies')}: {entry['copies']}"
    )
    out.print(escape(text))
    for variant in entry["variants"]:
        words = variant["text_zh" if locale == "zh" else "text"]
        under = _say(locale, "with", variant["option"], variant["value"])
        cost = _say(locale, "energy", variant["cost"])
        out.print(f"[dim]{under}:[/] {cost}; {escape(words)}")
    facts = Table(box=None, padding=(0, 1), show_header=False, pad_edge=False)
    facts.add_column(style="dim")
    facts.add_column()
    if entry["tokens"]:
        facts.add_row(_say(locale, "tokens"), str(entry["tokens"]))
    for question in entry["asks"].values():
        facts.add_row(_say(locale, "asks"), escape(question[locale]))
    facts.add_row(_say(locale, "sources"), ", ".join(entry["sources"]))
    names = entry["scenarios"] or [_say(locale, "none")]
    facts.add_row(_say(locale, "scenarios"), escape("\n".join(names)))
    out.print(facts)
