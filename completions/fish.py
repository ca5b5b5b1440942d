# SPDX-License-Identifier: Apache-2.0
"""fish completion made of zsh's, so that there is no third list to forget. Usage: fish.py _cordon OUTPUT

tests/lint/docs.py holds zsh's list against what the program itself says it can."""
import re
import shlex
import sys

HEAD = """# SPDX-License-Identifier: Apache-2.0
# fish completion for cordon(1); made of _cordon by completions/fish.py.
function __cordon_is # the command is one of these, and a -- did not end its options
    set -l words (commandline -opc)
    contains -- "$words[2]" $argv; and not contains -- -- $words
end
function __cordon_first # the command itself is still to come
    test (count (commandline -opc)) -eq 1
end
function __cordon_behind # the command line of the program that exec runs
    set -l words (commandline -opc)
    test "$words[2]" = exec; and contains -- -- $words
end
complete -c cordon -f
complete -c cordon -n __cordon_first -l help -d 'list the commands'
complete -c cordon -n __cordon_first -l version -d 'which version this is'
complete -c cordon -n __cordon_behind -F -a '(__fish_complete_command)'
"""


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def values(action):
    """What may follow, in fish's words: a file, one of a list, or something that only the user knows."""
    if action == "_files":
        return ["-r", "-F"]
    words = re.fullmatch(r"\(([\w -]+)\)", action)
    ids = re.fullmatch(r'\(\$\{\(f\)"(\$\(.*\))"\}\)', action)  # lines of a command
    return ["-x", "-a", quoted(words.group(1) if words else ids.group(1)[1:])] if words or ids else ["-x"]


def option(command, names, description, action):
    line = ["complete", "-c", "cordon", "-n", quoted(f"__cordon_is {command}")]
    for name in names:
        line += ["-l", name[2:]] if name.startswith("--") else ["-s", name[1:]]
    return line + ["-d", quoted(description)] + (values(action) if action is not None else [])


def command_lines(command, block):
    for spec in shlex.split(block.replace("\\\n", " "))[1:]:  # behind _arguments
        m = re.fullmatch(r"(?:\([^)]*\))?\*?(\{[^}]*\}|--?[\w-]+)\[(.*?)\](?::[^:]*:(.*))?", spec, re.S)
        if m:
            yield option(command, m.group(1).strip("{}").split(","), m.group(2), m.group(3))
        elif spec.startswith(("-S", "*::")):
            continue
        elif m := re.fullmatch(r"(?:\d+|\*)?:[^:]*:(.*)", spec, re.S):
            given = [v for v in values(m.group(1)) if v not in ("-r", "-x")]
            if given:
                yield ["complete", "-c", "cordon", "-n", quoted(f"__cordon_is {command}"), *given]
        else:
            sys.exit(f"fish.py: {command}: {spec!r} is no option and no argument as zsh's _arguments has them")


text = open(sys.argv[1]).read()
lines = [["complete", "-c", "cordon", "-n", "__cordon_first", "-a", name, "-d", quoted(what)]
         for name, what in re.findall(r"^  '([a-z]+):(.*)'$", text, re.M)]
blocks = re.findall(r"^([a-z]+)\)\n(.*?)^  ;;", text, re.M | re.S)
for command, block in blocks:
    lines += command_lines(command, block)
if not blocks:
    sys.exit("fish.py: no command found")
with open(sys.argv[2], "w") as out:
    out.write(HEAD + "".join(" ".join(line) + "\n" for line in lines))
