"""The environment that Dagster, dbt and child processes need, derived from the settings."""

import os
from datetime import datetime

import click

from cli.data_folder import prepare_folders
from control.clock import utc_now
from control.resources import DAGSTER_HOME
from control.settings import Settings, load_settings


def prepare() -> Settings:
    """Read the settings, make the data folders, and set the variables that child processes and libraries read.

    Raises:
        SettingsError: a variable is malformed; the message names it and the fix.
    """
    settings = load_settings()
    if closed := prepare_folders(settings):
        click.echo(closed, err=True)
    os.environ.update(
        {
            "DAGSTER_HOME": str(DAGSTER_HOME),
            "DAGSTER_DISABLE_TELEMETRY": "yes",
            "LEDGERMART_DAGSTER_DIR": str(settings.dagster_dir),
            "LEDGERMART_DATA_DIR": str(settings.data_dir),
            "LEDGERMART_CODE_SERVER_SOCKET": str(settings.code_server_socket),
        }
    )
    return settings


def age(instant: datetime) -> str:
    """Say how long ago an instant was, in the largest unit that fits."""
    seconds = max(int((utc_now() - instant).total_seconds()), 0)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
