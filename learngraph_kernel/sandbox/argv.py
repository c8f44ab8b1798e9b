"""The exec policy of `sandbox-agent-v1`: an agent runs a script file that lies in its workspace, and nothing else.

Code must be in a file, so that what ran can be read, hashed and shown afterwards: code inside an argument is refused
in every spelling. That holds by construction, since options are on an allow-list; the lists of forbidden ones only
make the message better. What follows the script belongs to the script and is free.

    argv[0]                                   decision
    python, python3, node                     run: harmless options, then a script of that language; Python gets -I -B
    rm                                        remove: paths below work/ only; carried out by sandboxd, needs a grant
                                              when the approval mode is on, audited when it is off
    rmdir, dd, mkfs, shred, Remove-Item, …    refused: destructive_command
    NAME=value                                refused: env_assignment
    anything else, also /usr/bin/python       refused: interpreter

Pure: whether the script is a regular file is checked where it is opened (`sandboxd.workspace`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from learngraph_kernel.sandbox.paths import PathRefused, check_deletable, check_path
from learngraph_kernel.sandbox.refusals import PolicyRefused, printable

PYTHONS = frozenset({"python", "python3"})
SUFFIXES = {"python": (".py",), "node": (".js", ".mjs", ".cjs")}

_PYTHON_FLAGS = frozenset("BEIsuqObP")
_PYTHON_INLINE = frozenset("cmi")
_PYTHON_W = re.compile(r"(default|error|always|module|once|ignore)(::[A-Z][A-Za-z]{0,40})?", re.ASCII)
_PYTHON_X = re.compile(
    r"(utf8(=[01])?|dev|faulthandler|importtime|no_debug_ranges|int_max_str_digits=\d{1,6})", re.ASCII
)
_NODE_OPTIONS = re.compile(
    r"--(max-old-space-size=\d{1,5}|stack-trace-limit=\d{1,4}|unhandled-rejections=(strict|warn|none|throw)"
    r"|enable-source-maps|no-warnings|no-deprecation|trace-(warnings|deprecation|uncaught)"
    r"|throw-deprecation|pending-deprecation)",
    re.ASCII,
)
_NODE_INLINE_LONG = frozenset(
    "eval print interactive import require loader experimental-loader input-type experimental-default-type".split()
)
_NODE_INLINE_SHORT = frozenset("epicr")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_DESTRUCTIVE = frozenset(
    "rm rmdir unlink del erase rd deltree dd shred srm wipe wipefs sfill sswap scrub truncate blkdiscard fdisk sfdisk "
    "cfdisk sgdisk gdisk parted partprobe format diskpart mkswap swapoff hdparm badblocks cryptsetup lvremove vgremove "
    "pvremove zpool zfs fstrim cipher sdelete remove-item ri clear-content clear-item clear-disk format-volume "
    "remove-partition initialize-disk trash trash-put".split()
)
_SECRET = re.compile(
    r"(?i)^(-{0,2}[\w.-]*(?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|credential|authorization)[\w.-]*)([=:])(.+)$",
    re.S,
)
_SECRET_FLAG = re.compile(r"(?i)^--?[\w.-]*(pass(word|wd|phrase)?|secret|token|api[_-]?key|credential|authorization)$")
_SECRET_VALUE = re.compile(
    r"\b(sk-|ghp_|gho_|github_pat_|xox[abp]-|AKIA|eyJ)[A-Za-z0-9_\-.]{8,}|://[^/\s:@]+:[^/\s@]+@"
)


class ArgvRefused(PolicyRefused):
    """The command is not one that an agent may run."""

    code: ClassVar[str] = "argv_refused"


@dataclass(frozen=True, slots=True)
class ArgvLimits:
    """Bounds of one command line: how many arguments, and how many bytes with a terminator each."""

    max_arguments: int = 64
    max_bytes: int = 32 * 1024


@dataclass(frozen=True, slots=True)
class CheckedCommand:
    """A command that the policy lets pass.

    Attributes:
        action: `run` goes to the container; `remove` is done by sandboxd on the files themselves.
        argv: what is run, with the flags of a clean run put in; for `remove` as it was asked.
        script: path of the script in the workspace; None for `remove`.
        targets: paths to remove; empty for `run`.
        recursive: `rm -r`.
        ignore_missing: `rm -f`.
        digest: SHA-256 of the command as asked, for the record.
        redacted: the command as asked, with what looks like a secret masked, for the record.
    """

    action: Literal["run", "remove"]
    argv: tuple[str, ...]
    script: str | None
    targets: tuple[str, ...]
    recursive: bool
    ignore_missing: bool
    digest: str
    redacted: tuple[str, ...]


_DEFAULTS = ArgvLimits()


def check_argv(argv: Sequence[str], *, limits: ArgvLimits = _DEFAULTS, cwd: str = ".") -> CheckedCommand:
    """Decides about a command line.

    Args:
        argv: program and arguments; there is no shell, so nothing is expanded.
        limits: bounds.
        cwd: where it is to run; only `.`, the workspace, is accepted.

    Raises:
        ArgvRefused: with the rule that refused it: `shape`, `cwd`, `too_many`, `too_long`, `nul`, `encoding`,
            `env_assignment`, `interpreter`, `inline_code`, `option`, `script_missing`, `script_path`, `script_type`,
            `destructive_command` or `destructive_path`.
    """
    words = _bounded(argv, limits)
    if cwd != ".":
        raise _refuse("cwd", "commands run in the workspace itself", f"cwd {printable(str(cwd))}", *_USE_RELATIVE)
    program = words[0]
    if _ASSIGNMENT.match(program):
        raise _refuse("env_assignment", "environment variables cannot be set in a command", "argument 0", *_USE_ARGS)
    if program in PYTHONS:
        return _checked(words, script=_python(words), clean=("-I", "-B"))
    if program == "node":
        return _checked(words, script=_node(words))
    if program == "rm":
        return _remove(words)
    if _is_destructive(program):
        raise _refuse(
            "destructive_command", f"{printable(program)} destroys data and is never run", "argument 0", *_USE_RM
        )
    raise _refuse(
        "interpreter", f"{printable(program)} is not one of python, python3, node", "argument 0", *_USE_SCRIPT
    )


def argv_digest(argv: Sequence[str]) -> str:
    """SHA-256 of a command line, unambiguous in where arguments end."""
    return hashlib.sha256(json.dumps(list(argv), ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()


def redact_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """The command line with values masked that look like secrets or follow an option named like one."""
    redacted: list[str] = []
    hide_next = False
    for word in argv:
        if hide_next and not word.startswith("-"):
            redacted.append("***")
            hide_next = False
            continue
        named = _SECRET.match(word)
        masked = f"{named[1]}{named[2]}***" if named else _SECRET_VALUE.sub("***", word)
        redacted.append(masked)
        hide_next = named is None and _SECRET_FLAG.match(word) is not None
    return tuple(redacted)


def _bounded(argv: Sequence[str], limits: ArgvLimits) -> tuple[str, ...]:
    if isinstance(argv, str) or not isinstance(argv, Sequence) or not all(isinstance(word, str) for word in argv):
        raise _refuse("shape", "the command must be a list of strings", "argv", *_USE_SCRIPT)
    words = tuple(argv)
    if not words or not words[0]:
        raise _refuse("shape", "the command is empty", "argv", *_USE_SCRIPT)
    if len(words) > limits.max_arguments:
        reason = f"the command has {len(words)} arguments, at most {limits.max_arguments} are allowed"
        raise _refuse("too_many", reason, "argv", *_USE_FILE)
    size = 0
    for index, word in enumerate(words):
        if "\0" in word:
            raise _refuse("nul", "an argument contains a NUL byte", f"argument {index}", *_USE_FILE)
        try:
            size += len(word.encode()) + 1
        except UnicodeEncodeError:
            raise _refuse("encoding", "an argument is not valid Unicode", f"argument {index}", *_USE_FILE) from None
    if size > limits.max_bytes:
        reason = f"the command has {size:,} bytes, at most {limits.max_bytes:,} are allowed"
        raise _refuse("too_long", reason, "argv", *_USE_FILE)
    return words


def _checked(words: tuple[str, ...], *, script: tuple[int, str], clean: tuple[str, ...] = ()) -> CheckedCommand:
    at, path = script
    options = tuple(word for word in words[1:at] if word not in clean)
    argv = (words[0], *clean, *options, path, *words[at + 1 :])
    return CheckedCommand("run", argv, path, (), False, False, argv_digest(words), redact_argv(words))


# Python


def _python(words: tuple[str, ...]) -> tuple[int, str]:
    """Index and path of the script."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += _python_option(words, at)
    return at, _script(words, at, "python")


def _python_option(words: tuple[str, ...], at: int) -> int:
    """How many arguments the option at `at` takes up. CPython reads a cluster letter by letter, and so do we."""
    word = words[at]
    if word == "-":
        raise _inline("a program from standard input", at)
    if word.startswith("--"):
        raise _option(word, at)
    for position, letter in enumerate(word[1:], start=2):
        if letter in "WX":
            attached = word[position:]
            value = attached or (words[at + 1] if at + 1 < len(words) else "")
            if not (_PYTHON_W if letter == "W" else _PYTHON_X).fullmatch(value):
                raise _option(f"-{letter} {value}", at)
            return 1 if attached else 2
        if letter in _PYTHON_INLINE:
            raise _inline(f"-{letter}", at)
        if letter not in _PYTHON_FLAGS:
            raise _option(word, at)
    return 1


# Node


def _node(words: tuple[str, ...]) -> tuple[int, str]:
    at = 1
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        if word == "-":
            raise _inline("a program from standard input", at)
        # Node reads '_' as '-' in options, and takes `--print` for `-p`, `-pe` for `-p -e`.
        name = word.lstrip("-").partition("=")[0].replace("_", "-").lower()
        if word.startswith("--"):
            if name in _NODE_INLINE_LONG or name.startswith("inspect"):
                raise _inline(f"--{name}", at)
        elif set(word) & _NODE_INLINE_SHORT:
            raise _inline(word, at)
        if not _NODE_OPTIONS.fullmatch(word):
            raise _option(word, at)
        at += 1
    return at, _script(words, at, "node")


def _script(words: tuple[str, ...], at: int, language: str) -> str:
    if at >= len(words):
        raise _refuse("script_missing", "the command names no script", "argv", *_USE_SCRIPT)
    try:
        path = check_path(words[at].removeprefix("./"))
    except PathRefused as error:
        raise _refuse("script_path", error.what, f"argument {at}: {error.where}", *_USE_SCRIPT) from error
    if not path.endswith(SUFFIXES[language]) or "/" not in path:
        wanted = ", ".join(SUFFIXES[language])
        raise _refuse("script_type", f"{words[0]} runs files ending in {wanted}", f"argument {at}", *_USE_SCRIPT)
    return path


# Deletion


def _remove(words: tuple[str, ...]) -> CheckedCommand:
    recursive = ignore_missing = options_over = False
    targets: list[str] = []
    for index, word in enumerate(words[1:], start=1):
        if options_over or not word.startswith("-") or word == "-":
            targets.append(_target(word, index))
        elif word == "--":
            options_over = True
        elif word in ("--recursive", "--force", "--verbose") or re.fullmatch(r"-[rRfv]+", word):
            recursive |= word == "--recursive" or (word[1] != "-" and bool(set(word) & set("rR")))
            ignore_missing |= word == "--force" or (word[1] != "-" and "f" in word)
        else:
            raise _refuse("option", f"rm {printable(word)} is not allowed", f"argument {index}", *_USE_RM)
    if not targets:
        raise _refuse("destructive_path", "rm names nothing to remove", "argv", *_USE_RM)
    digest, redacted = argv_digest(words), redact_argv(words)
    return CheckedCommand("remove", words, None, tuple(targets), recursive, ignore_missing, digest, redacted)


def _target(word: str, index: int) -> str:
    place = f"argument {index}"
    if set(word) & set("*?["):
        raise _refuse("destructive_path", "there is no shell: patterns are not expanded", place, *_USE_RM)
    try:
        return check_deletable(word.removeprefix("./").removesuffix("/"))
    except PathRefused as error:
        raise _refuse("destructive_path", error.what, f"{place}: {error.where}", *_USE_RM) from error


def _is_destructive(program: str) -> bool:
    name = re.split(r"[/\\]", program)[-1].casefold().removesuffix(".exe")
    return name in _DESTRUCTIVE or name.partition(".")[0] in ("mkfs", "mke2fs", "fsck") or name.startswith("mkfs")


# Words

_USE_SCRIPT = (
    "write the code to a file such as work/step.py and run python3 work/step.py (or node work/step.js)",
    "请把代码写入文件（如 work/step.py），再运行 python3 work/step.py（或 node work/step.js）",
)
_USE_RELATIVE = (
    "use cwd '.' and paths below inputs/, work/, outputs/",
    "请使用 cwd '.'，路径写在 inputs/、work/、outputs/ 之下",
)
_USE_ARGS = ("pass values as arguments of the script or in a file", "请通过脚本参数或文件传值")
_USE_FILE = (
    "put the values into a file below work/ and let the script read it",
    "请把内容写入 work/ 下的文件，由脚本读取",
)
_USE_RM = (
    "remove files with rm and exact paths below work/; nothing else can be destroyed",
    "只能用 rm 加 work/ 下的确切路径删除文件；其他内容不能销毁",
)


def _refuse(rule: str, reason: str, place: str, remedy: str, remedy_zh: str) -> ArgvRefused:
    return ArgvRefused(rule, reason, place=place, remedy=remedy, remedy_zh=remedy_zh)


def _inline(what: str, at: int) -> ArgvRefused:
    return _refuse(
        "inline_code", f"code inside a command is not allowed ({printable(what)})", f"argument {at}", *_USE_SCRIPT
    )


def _option(word: str, at: int) -> ArgvRefused:
    return _refuse(
        "option", f"the option {printable(word)} is not on the list of harmless ones", f"argument {at}", *_USE_SCRIPT
    )
