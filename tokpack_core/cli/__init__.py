"""The commands on plain files and on stores, without Dagster: options and help here, the work in `commands`."""
