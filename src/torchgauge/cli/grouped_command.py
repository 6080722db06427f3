"""A verb whose ``--help`` lists its options in groups: what is measured, how, where, limits, output."""

from __future__ import annotations

import click

GROUPS = {
    "What": (
        "more_suites device models mode config dtype tier size batch batch_profile processes pretrained "
        "shard expectations config_file torchbench base head base_rev head_rev base_env head_env base_config "
        "head_config control no_control groups group checks patterns ops variant samples"
    ),
    "How": (
        "threads precision measure_seconds no_accuracy no_memory_probe no_warm_compile no_calibration "
        "quiet_wait cold_compile compile_cache no_fallback_check prefetch attempts seed policy"
    ),
    "Where": "python executor executor_words store resume retry mixed_versions durations into node",
    "Limits": "budget max_time max_launches timeout memory_limit",
    "Output": "estimate quiet verbose as_json save_durations trace script only_list help",
}
"""Names of parameters by heading, in the order in which they are shown."""


class GroupedCommand(click.Command):
    """A command with its options under :data:`GROUPS`; what is in none stands under ``Options``."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group that the command has options of."""
        records = {
            "help" if "--help" in each.opts else each.name: record
            for each in self.get_params(ctx)
            if isinstance(each, click.Option) and (record := each.get_help_record(ctx)) is not None
        }
        for heading, names in GROUPS.items():
            rows = [records.pop(name) for name in names.split() if name in records]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
        if records:
            with formatter.section("Options"):
                formatter.write_dl(list(records.values()))
