"""Protected files are kept like others."""

from __future__ import annotations

from dataclasses import replace

from readcache.context.pruner import prune_messages
from readcache.core.judging.protect import (
    concerns_protected,
    kept_label,
    leads_to_protected,
    shows_lines_of,
    shows_secrets,
)
from readcache.core.model.paths import matches_any, may_name
from tests.laws.mutants.guarded.patching import gives, guarded, instead, takes

PROTECT = (
    guarded(
        "protected files are pruned like others",
        takes(prune_messages, lambda rules, **_: {"rules": replace(rules, protected=())}),
        "session/test_protected.py::test_a_protected_file_is_not_pruned",
    ),
    guarded(
        "a glob names only files at its very path",
        instead(matches_any, lambda path, globs: path in globs),
        "session/test_protected.py::test_a_glob_names_files_below_any_directory",
    ),
    guarded(
        "a protected file is kept like any other",
        gives(concerns_protected, lambda _: False),
        "session/test_protected.py::test_of_a_protected_file_nothing_is_kept",
    ),
    guarded(
        "a command on a protected file is kept",
        takes(kept_label, lambda policy, **_: {"policy": replace(policy, protected=())}),
        "session/test_protected.py::test_of_a_protected_file_nothing_is_kept",
    ),
    guarded(
        "a link to a protected file is a file like any other",
        gives(leads_to_protected, lambda _: False),
        "session/test_protected.py::test_of_what_is_written_through_a_link_to_a_protected_file_nothing_is_kept",
    ),
    guarded(
        "headings of protected files are not seen",
        gives(shows_lines_of, lambda _: False),
        "session/test_protected.py::test_an_output_that_names_a_protected_file_above_its_lines_is_not_kept",
    ),
    guarded(
        "secrets of files that a command does not name are kept",
        gives(shows_secrets, lambda _: False),
        "session/test_protected.py::test_a_secret_is_not_kept_however_its_file_is_read",
    ),
    guarded(
        "words with patterns in them name no protected file",
        takes(may_name, lambda command, **_: {"command": command.translate(dict.fromkeys(map(ord, "*?[{,}")))}),
        "session/test_protected.py::test_a_secret_is_not_kept_however_its_file_is_read",
    ),
)
