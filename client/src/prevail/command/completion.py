"""Completion of commands and options in a shell, made from the parser itself."""

import argparse
from collections.abc import Mapping, Sequence

_BASH = """_prevail() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words=""
  case "${{COMP_WORDS[1]}}:${{COMP_WORDS[2]}}" in
{cases}
    *) words="{commands}" ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then words="{commands}"; fi
  COMPREPLY=( $(compgen -W "$words" -- "$current") )
  if [ ${{#COMPREPLY[@]}} -eq 0 ]; then COMPREPLY=( $(compgen -f -- "$current") ); fi
}}
complete -F _prevail prevail
"""


def script(shell: str, parser: argparse.ArgumentParser, others: Sequence[str]) -> str:
    """Return the completion script of a shell, to be read by ``source <(prevail completion bash)``."""
    words = words_of(parser)
    commands = " ".join([*dict.fromkeys(name.split(":")[0] for name in words), *others])
    if shell == "fish":
        lines = [f"complete -c prevail -n __fish_use_subcommand -f -a '{commands}'"]
        for name, offered in words.items():
            seen = name.split(":")[-1]
            lines.append(f"complete -c prevail -n '__fish_seen_subcommand_from {seen}' -a '{' '.join(offered)}'")
        return "\n".join(lines) + "\n"
    # The more specific cases first: `gate:check` before `gate:*`.
    ordered = sorted(words.items(), key=lambda one: -one[0].count(":"))
    cases = "\n".join(
        f'    {name if ":" in name else f"{name}:*"}) words="{" ".join(offered)}" ;;' for name, offered in ordered
    )
    begin = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return begin + _BASH.format(cases=cases, commands=commands)


def words_of(parser: argparse.ArgumentParser, prefix: str = "") -> Mapping[str, Sequence[str]]:
    """Return the words that may follow each command: its options, subcommands and choices."""
    found: dict[str, Sequence[str]] = {}
    for action in parser._actions:  # argparse has no public way
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                further = words_of(below, f"{prefix}{name}:")
                own = [option for one in below._actions for option in one.option_strings if option.startswith("--")]
                fixed = [str(value) for one in below._actions if not one.option_strings for value in one.choices or ()]
                found[f"{prefix}{name}"] = [*fixed, *own]
                found |= further
    return found
