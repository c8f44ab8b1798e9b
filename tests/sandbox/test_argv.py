"""What an agent may run: a script file in its workspace, by an interpreter on the list, and nothing else."""

from __future__ import annotations

import pytest

from learngraph_kernel.sandbox.argv import ArgvLimits, ArgvRefused, argv_digest, check_argv, redact_argv

ALLOWED = [
    "python work/a.py",
    "python3 work/a.py",
    "python3 ./work/a.py",
    "python3 inputs/a.py",
    "python3 outputs/a.py",
    "python3 work/deep/er/a.py",
    "python3 -u work/a.py",
    "python3 -I -B work/a.py",
    "python3 -IB work/a.py",
    "python3 -BEIsuq work/a.py",
    "python3 -O work/a.py",
    "python3 -OO work/a.py",
    "python3 -P work/a.py",
    "python3 -bb work/a.py",
    "python3 -W error work/a.py",
    "python3 -Werror work/a.py",
    "python3 -W ignore::DeprecationWarning work/a.py",
    "python3 -uW default work/a.py",
    "python3 -X utf8 work/a.py",
    "python3 -Xutf8=1 work/a.py",
    "python3 -X dev work/a.py",
    "python3 -X importtime work/a.py",
    "python3 -X faulthandler work/a.py",
    "python3 -BXdev work/a.py",
    "python3 work/a.py -c 1",
    "python3 work/a.py -m x -e --eval=1 -",
    "python3 work/a.py --password=x /etc/passwd ../x",
    "python3 work/分析.py 一",
    "node work/a.js",
    "node work/a.mjs",
    "node work/a.cjs",
    "node ./work/a.js -e 1",
    "node --max-old-space-size=512 work/a.js",
    "node --stack-trace-limit=50 work/a.js",
    "node --unhandled-rejections=strict work/a.js",
    "node --enable-source-maps work/a.js",
    "node --no-warnings work/a.js",
    "node --trace-uncaught work/a.js --inspect",
]

REFUSED = {
    "inline_code": [
        "python -c print(1)",
        "python3 -c",
        "python3 -cprint(1)",
        "python3 -Ic print(1)",
        "python3 -ic print(1)",
        "python3 -Bc 1",
        "python3 -uBIc 1",
        "python3 -I -B -c 1",
        "python3 -m http.server",
        "python3 -mhttp.server",
        "python3 -Im http.server",
        "python3 -i work/a.py",
        "python3 -Bi work/a.py",
        "python3 -",
        "python3 - work/a.py",
        "python3 -u - work/a.py",
        "python3 -W error -c 1",
        "python3 -X dev -m x",
        "node -e 1",
        "node -e1",
        "node -p 1",
        "node -pe 1",
        "node -ep 1",
        "node -i",
        "node -c work/a.js",
        "node -r ./work/a.js work/b.js",
        "node -",
        "node --eval 1",
        "node --eval=1",
        "node --EVAL=1",
        "node --print 1",
        "node --print=1",
        "node --interactive",
        "node --import ./work/a.js work/b.js",
        "node --import=data:text/javascript,1 work/a.js",
        "node --require ./work/a.js work/b.js",
        "node --require=./work/a.js work/b.js",
        "node --loader ./work/a.mjs work/b.js",
        "node --experimental-loader=./work/a.mjs work/b.js",
        "node --experimental_loader=./work/a.mjs work/b.js",
        "node --inspect work/a.js",
        "node --inspect=0.0.0.0:9229 work/a.js",
        "node --inspect-brk work/a.js",
        "node --inspect_brk work/a.js",
        "node --inspect-port=0 work/a.js",
        "node --input-type=module work/a.js",
        "node --no-warnings -e 1",
        "node --max-old-space-size=10 --eval=1",
    ],
    "option": [
        "python3 --version",
        "python3 -V",
        "python3 -h",
        "python3 -x work/a.py",
        "python3 -S work/a.py",
        "python3 -d work/a.py",
        "python3 -v work/a.py",
        "python3 -- work/a.py",
        "python3 --check-hash-based-pycs always work/a.py",
        "python3 --eval=1 work/a.py",
        "python3 -X presite=x work/a.py",
        "python3 -X pycache_prefix=/tmp work/a.py",
        "python3 -X perf work/a.py",
        "python3 -X",
        "python3 -W",
        "python3 -W error::evil.Class work/a.py",
        "python3 -W error::Warning:mod work/a.py",
        "python3 -Wc work/a.py",
        "python3 -Z work/a.py",
        "python3 -B\n work/a.py",
        "node --",
        "node --version",
        "node -v",
        "node -h",
        "node --test work/a.js",
        "node --watch work/a.js",
        "node --run build",
        "node --env-file=work/.env work/a.js",
        "node --expose-gc work/a.js",
        "node --allow-natives-syntax work/a.js",
        "node --max-old-space-size=99999999 work/a.js",
        "node --max-old-space-size work/a.js",
        "node --openssl-config=work/x work/a.js",
        "node --snapshot-blob=work/x work/a.js",
        "node --build-snapshot work/a.js",
        "node --diagnostic-dir=/tmp work/a.js",
        "node --redirect-warnings=work/x work/a.js",
        "node --no-warnings\n work/a.js",
        "node -C development work/a.js",
        "rm -i work/a",
        "rm --no-preserve-root work/a",
        "rm --one-file-system work/a",
        "rm -d work/a",
        "rm -rf- work/a",
    ],
    "interpreter": [
        "/usr/bin/python3 work/a.py",
        "./python3 work/a.py",
        "work/python3 work/a.py",
        "python3.11 work/a.py",
        "python2 work/a.py",
        "Python3 work/a.py",
        "pythоn3 work/a.py",  # a Cyrillic o
        "ｐｙｔｈｏｎ３ work/a.py",
        "python3\n work/a.py",
        "nodejs work/a.js",
        "NODE work/a.js",
        "bash -c ls",
        "sh work/a.sh",
        "env python3 work/a.py",
        "sudo python3 work/a.py",
        "perl -e 1",
        "find work -delete",
        "xargs rm",
        "git clean -fdx",
        "pip install x",
        "busybox rm x",
        "timeout 1 python3 work/a.py",
        "../python3 work/a.py",
        "-c print(1)",
    ],
    "env_assignment": [
        "PYTHONPATH=work python3 work/a.py",
        "A=1",
        "NODE_OPTIONS=--require=./x node work/a.js",
        "LD_PRELOAD=x.so python3 work/a.py",
        "PATH+=x python3 work/a.py",
        "_=",
    ],
    "script_missing": ["python3", "python", "node", "python3 -B", "node --no-warnings", "python3 -W error"],
    "script_path": [
        "python3 /work/a.py",
        "python3 /etc/x.py",
        "python3 ../a.py",
        "python3 work/../../a.py",
        "python3 work/../inputs/a.py",
        "python3 work//a.py",
        "python3 work/./a.py",
        "python3 ././work/a.py",
        "python3 .//etc/a.py",
        "python3 a.py",
        "python3 tmp/a.py",
        "python3 Work/a.py",
        "python3 ~/a.py",
        "python3 C:\\a.py",
        "python3 C:/a.py",
        "python3 work\\a.py",
        "python3 \\\\host\\a.py",
        "python3 http://host/a.py",
        "python3 file:work/a.py",
        "python3 work/a\u202egnp.py",
        "python3 work/a\u200b.py",
        "python3 work/a\x07.py",
        "node /a.js",
        "node ../a.js",
        "node data:text/javascript,1",
        "node inspect work/a.js",
        "node run x",
        "python3 A=1 work/a.py",
        "python3 work/" + "n" * 256 + ".py",
        "python3 work/" + "d/" * 40 + "a.py",
    ],
    "script_type": [
        "python3 work",
        "python3 work/a",
        "python3 work/a.pyc",
        "python3 work/a.pyz",
        "python3 work/a.zip",
        "python3 work/a.PY",
        "python3 work/a.py.txt",
        "python3 work/a.js",
        "python3 work/a.pyw",
        "node work/a.py",
        "node work/a.ts",
        "node work/a.wasm",
        "node work/a.json",
        "node work/a",
    ],
    "destructive_command": [
        "rmdir work/a",
        "dd if=/dev/zero of=work/a",
        "mkfs /dev/sda",
        "mkfs.ext4 /dev/sda",
        "mke2fs x",
        "shred work/a",
        "truncate -s 0 work/a",
        "wipefs -a x",
        "unlink work/a",
        "del work\\a",
        "DEL work\\a",
        "erase a",
        "rd /s a",
        "format c:",
        "Format-Volume -DriveLetter C",
        "Remove-Item work/a -Recurse",
        "REMOVE-ITEM work/a",
        "/bin/rm work/a",
        "./rm work/a",
        "bin\\rm.exe work/a",
        "RM work/a",
        "fdisk /dev/sda",
        "Clear-Content work/a",
        "srm x",
    ],
    "destructive_path": [
        "rm",
        "rm -rf",
        "rm --",
        "rm work",
        "rm -rf work",
        "rm -rf work/",
        "rm -rf .",
        "rm -rf ./",
        "rm -rf /",
        "rm -rf /*",
        "rm -rf ~",
        "rm -rf *",
        "rm work/*.csv",
        "rm work/[ab]",
        "rm work/a?",
        "rm /work/a",
        "rm ../a",
        "rm work/../inputs/a",
        "rm work/a/..",
        "rm C:\\a",
        "rm c:/a",
        "rm D:work/a",
        "rm work\\a",
        "rm inputs/a",
        "rm outputs/a",
        "rm -r inputs",
        "rm work/a inputs/b",
        "rm -- -rf",
        "rm -",
        "rm work/a//",
        "rm work/a\u202e",
    ],
}


@pytest.mark.parametrize("line", ALLOWED)
def test_a_script_in_the_workspace_runs(line: str) -> None:
    words = line.split(" ")
    command = check_argv(words)
    assert command.action == "run"
    assert command.script is not None and command.script.split("/")[0] in ("inputs", "work", "outputs")
    if words[0].startswith("python"):
        assert command.argv[1:3] == ("-I", "-B")
    assert command.script in command.argv


@pytest.mark.parametrize(("rule", "line"), [(rule, line) for rule, lines in REFUSED.items() for line in lines])
def test_everything_else_is_refused_by_name(rule: str, line: str) -> None:
    with pytest.raises(ArgvRefused) as refusal:
        check_argv(line.split(" "))
    assert refusal.value.rule == rule
    assert refusal.value.where and refusal.value.remedy and refusal.value.remedy_zh
    assert str(refusal.value).isprintable()


def test_the_arguments_of_the_script_are_left_alone() -> None:
    command = check_argv(["python3", "-I", "work/a.py", "-I", "-c", "x y", ""])
    assert command.argv == ("python3", "-I", "-B", "work/a.py", "-I", "-c", "x y", "")


@pytest.mark.parametrize(
    ("line", "targets", "recursive", "force"),
    [
        ("rm work/a", ("work/a",), False, False),
        ("rm ./work/a work/b/c", ("work/a", "work/b/c"), False, False),
        ("rm -r work/a/", ("work/a",), True, False),
        ("rm -rf work/a", ("work/a",), True, True),
        ("rm -R --force -v work/a", ("work/a",), True, True),
        ("rm --recursive -- work/-rf", ("work/-rf",), True, False),
        ("rm --force work/a", ("work/a",), False, True),
        ("rm --verbose work/a", ("work/a",), False, False),
    ],
)
def test_rm_below_work_becomes_a_removal(line: str, targets: tuple[str, ...], recursive: bool, force: bool) -> None:
    command = check_argv(line.split(" "))
    assert (command.action, command.targets, command.recursive, command.ignore_missing) == (
        "remove",
        targets,
        recursive,
        force,
    )


@pytest.mark.parametrize("cwd", ["", "/", "work", "..", "./", "/work"])
def test_only_the_workspace_itself_is_the_current_folder(cwd: str) -> None:
    with pytest.raises(ArgvRefused) as refusal:
        check_argv(["python3", "work/a.py"], cwd=cwd)
    assert refusal.value.rule == "cwd"


@pytest.mark.parametrize(
    ("argv", "rule"),
    [
        ([], "shape"),
        ([""], "shape"),
        ("python3 work/a.py", "shape"),
        (["python3", 1], "shape"),
        (["python3", None], "shape"),
        (None, "shape"),
        ({"a": 1}, "shape"),
        (b"python3", "shape"),
        (["python3", "work/a.py", "a\0b"], "nul"),
        (["python3\0", "work/a.py"], "nul"),
        (["python3", "work/a.py", "\ud800"], "encoding"),
        (["python3", "work/a.py"] + ["x"] * 63, "too_many"),
        (["python3", "work/a.py", "x" * 32768], "too_long"),
        (["python3", "work/a.py", "漢" * 11000], "too_long"),
    ],
)
def test_shape_and_size_are_bounded(argv: object, rule: str) -> None:
    with pytest.raises(ArgvRefused) as refusal:
        check_argv(argv)  # type: ignore[arg-type]
    assert refusal.value.rule == rule


def test_limits_are_exact() -> None:
    limits = ArgvLimits(max_arguments=3, max_bytes=len("python3 work/a.py xx "))
    check_argv(["python3", "work/a.py", "xx"], limits=limits)
    with pytest.raises(ArgvRefused):
        check_argv(["python3", "work/a.py", "xxx"], limits=limits)


def test_the_digest_tells_arguments_apart() -> None:
    assert argv_digest(["a", "b c"]) != argv_digest(["a", "b", "c"])
    assert argv_digest(["a"]) == argv_digest(["a"])
    assert check_argv(["python3", "work/a.py"]).digest == argv_digest(["python3", "work/a.py"])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["x", "--password=hunter2"], ("x", "--password=***")),
        (["x", "--api-key", "abc", "rest"], ("x", "--api-key", "***", "rest")),
        (["x", "--token", "--other"], ("x", "--token", "--other")),
        (["x", "TOKEN=abc"], ("x", "TOKEN=***")),
        (["x", "db_password:abc\ndef"], ("x", "db_password:***")),
        (["x", "sk-abcdefgh1234"], ("x", "***")),
        (["x", "postgres://user:pw@host/db"], ("x", "postgres***host/db")),
        (["x", "work/tokens.csv", "--rows=5"], ("x", "work/tokens.csv", "--rows=5")),
    ],
)
def test_secrets_are_masked_in_the_record(words: list[str], expected: tuple[str, ...]) -> None:
    assert redact_argv(words) == expected
