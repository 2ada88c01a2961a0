"""`diceledger games`: what can be played, with which options."""

import typer
from rich.markup import escape
from rich.table import Table

from engine import AnyGame, catalogue
from services.cli.main_options import JsonOption, Locale, LocaleOption
from services.cli.render_console import console, print_json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="games", rich_help_panel="Games")(_games)


def _games(locale: LocaleOption = "en", json: JsonOption = False) -> None:
    """List the games with their seats, presets and options."""
    games = list(catalogue().values())
    if json:
        print_json({"games": [_as_json(game) for game in games]})
        return
    for game in games:
        _show(game, locale)


def _as_json(game: AnyGame) -> dict[str, object]:
    return {
        "game": game.id,
        "name": game.name,
        "name_zh": game.name_zh,
        "seats_low": game.seats_low,
        "seats_high": game.seats_high,
        "revision": game.revision,
        "presets": list(game.presets),
        "options": [
            {
                "option": option.id,
                "values": list(option.values),
                "default": option.default,
                "summary": option.summary,
            }
            for option in game.options
        ],
    }


def _show(game: AnyGame, locale: Locale) -> None:
    out = console()
    name = game.name_zh if locale == "zh" else game.name
    out.print(
        f"[bold]{escape(name)}[/]  [dim]--game {game.id}[/]  "
        f"{game.seats_low} to {game.seats_high} players"
    )
    if game.presets:
        out.print(f"  presets: {', '.join(game.presets)}")
    table = Table(box=None, padding=(0, 2), show_header=True, header_style="dim")
    for column in ("option", "values (default first)", "meaning"):
        table.add_column(column)
    for option in game.options:
        others = [value for value in option.values if value != option.default]
        summary = option.summary_zh if locale == "zh" else option.summary
        table.add_row(option.id, ", ".join([option.default, *others]), escape(summary))
    out.print(table)
