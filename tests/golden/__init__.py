"""Recorded answers of the whole service: what a change of the inside must leave as it is.

`requests/` is a fixed list of HTTP requests in groups, of every kind that the service answers. Each group runs in
order, where nothing is kept yet, since later requests use what earlier ones kept: recorded on a server and a database
of its own, asked again in a project of its own. `answers/GROUP.json.gz` holds what was answered when it was recorded.
`test_golden.py` asks again and compares: status, some headers, every member and every text equal, whole numbers equal,
other numbers within 1e-9 of their size (or 1e-12). Ids, times, request ids and cursors are replaced by placeholders: an
id is `id-1 of NAME` where NAME is the request that was first answered with it.

    python -m pytest tests/golden -n 2               # do the answers still stand?
    python -m tests.golden.record --list             # the groups, and how many requests of each kind
    python -m tests.golden.record --diff [GROUP …]   # what differs now, by request and JSON path; exit code 1 if any
    python -m tests.golden.record --diff --full      # every single difference instead of one line per pattern of paths
    python -m tests.golden.record GROUP [GROUP …]    # record these groups anew (all of them when none is named)
    python -m tests.golden.record --only 'gates/lower-*'   # only requests of that name; with --diff too

A change that is meant is looked at with `--diff`, explained in CHANGELOG.md, and recorded anew, no wider than it
reaches: by group, or by name with `--only`, which leaves the other answers as they are. A new request goes to the end
of its group, so that the ids of the others stay.

When two branches have recorded the same group, take either file and record that group anew after the merge. To see what
changed since some commit in all, `git checkout COMMIT -- tests/golden/answers`, `--diff`, and `git restore` them.

Everything random is seeded: in the request, or from its content where the service promises that. Checks of gates and
their like take their seed from ids, so ids are made from the name of the request here (`playing.Ids`).
"""
