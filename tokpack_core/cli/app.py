"""All commands that need no Dagster, in the order of the work."""

import typer

from tokpack_core.cli import compare, config, report, sequences, store, tokenizers, train

app = typer.Typer(add_completion=False)
for commands in (train, tokenizers, sequences, report, compare, store):
    app.registered_commands += commands.app.registered_commands
app.add_typer(config.app)
