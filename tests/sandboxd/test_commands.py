"""Commands in a real container: what they may, what their record says, what becomes of the files."""

from __future__ import annotations

import threading
import time

import pytest

from learngraph_kernel.sandbox.answers import Conflict, Forbidden
from learngraph_kernel.sandbox.client import Command, Sandbox, SandboxClient
from learngraph_kernel.sandbox.transport import new_key
from tests.sandboxd.running import Sandboxd

DAEMON = {"output_bytes": 100_000, "workspace_bytes": 8 << 20, "command_seconds": 20.0}


@pytest.fixture
def box(client: SandboxClient) -> Sandbox:
    return client.create("commands")


def run(client: SandboxClient, box: Sandbox, script: str, **options: float) -> Command:
    client.put_file(box.id, "work/script.py", script.encode())
    return client.run(box.id, ["python", "work/script.py"], **options)  # type: ignore[arg-type]


def test_a_script_runs_and_its_files_come_home(client: SandboxClient, box: Sandbox) -> None:
    done = run(
        client,
        box,
        "import sys; print('out'); print('err', file=sys.stderr); open('outputs/r.txt','w').write('r'); sys.exit(3)",
    )
    assert (done.state, done.exit_code, done.stdout, done.stderr) == ("exited", 3, b"out\n", b"err\n")
    assert done.report is not None and done.report["changed"] == ["outputs/r.txt"]
    assert client.get_file(box.id, "outputs/r.txt") == b"r"
    client.stop(box.id)
    assert client.get_file(box.id, "outputs/r.txt") == b"r"


def test_inline_code_and_other_programs_are_refused_before_anything_runs(client: SandboxClient, box: Sandbox) -> None:
    for argv in (
        ["python", "-c", "1"],
        ["sh", "work/x.sh"],
        ["node", "--eval=1"],
        ["python", "/etc/x.py"],
        ["rm", "-rf", "/"],
    ):
        with pytest.raises(Forbidden):
            client.exec(box.id, argv)
    assert client.get(box.id).state == "created"


def test_output_is_streamed_by_offset_and_cut_with_a_mark(client: SandboxClient, box: Sandbox) -> None:
    client.put_file(box.id, "work/s.py", b"import time\nprint('a'*10, flush=True)\ntime.sleep(1)\nprint('b'*200000)\n")
    command = client.exec(box.id, ["python", "work/s.py"])
    first = client.poll(command, wait=15)
    assert first.running and first.stdout == b"a" * 10 + b"\n"
    while not (last := client.poll(command, stdout=11, wait=15)).complete:
        pass
    assert last.truncated and len(last.stdout) == 100_000 - 11 and set(last.stdout) == {ord("b")}


def test_an_output_flood_disturbs_nobody(client: SandboxClient, box: Sandbox) -> None:
    client.put_file(box.id, "work/f.py", b"while True: print('x' * 10000)\n")
    command = client.exec(box.id, ["python", "work/f.py"], timeout=2)
    time.sleep(0.5)
    started = time.monotonic()
    client.health()
    assert time.monotonic() - started < 2
    while (end := client.poll(command, wait=15)).running:
        time.sleep(0.2)
    assert (end.state, end.truncated) == ("timed_out", True)


def test_a_timeout_takes_the_container_and_leaves_the_files(
    client: SandboxClient, box: Sandbox, daemon: Sandboxd
) -> None:
    done = run(client, box, "open('work/kept.txt','w').write('kept'); import time; time.sleep(60)", timeout=1)
    assert (done.state, done.exit_code) == ("timed_out", None)
    assert client.get(box.id).state == "cold"
    assert client.get_file(box.id, "work/kept.txt") == b"kept"
    assert daemon.containers(every=True) == []
    assert run(client, box, "print(open('work/kept.txt').read())").stdout == b"kept\n"


def test_cancel_ends_the_process_tree_and_keeps_the_container(client: SandboxClient, box: Sandbox) -> None:
    script = """import subprocess, time
subprocess.Popen(["sleep", "99"], start_new_session=True)
print("on", flush=True)
time.sleep(99)
"""
    client.put_file(box.id, "work/t.py", script.encode())
    command = client.exec(box.id, ["python", "work/t.py"])
    while not client.poll(command, wait=10).stdout:
        pass
    client.cancel(command)
    while (end := client.poll(command, stdout=3, wait=10)).running:
        pass
    assert end.state == "cancelled"
    assert client.get(box.id).state == "warm_idle"
    # The tail of the process tree is gone as well: the next command sees itself, the runner and the init.
    count = "import os; print(len([p for p in os.listdir('/proc') if p.isdigit()]))"
    assert run(client, box, count).stdout == b"3\n"


def test_a_second_command_waits_its_turn_outside(client: SandboxClient, box: Sandbox) -> None:
    client.put_file(box.id, "work/w.py", b"import time; time.sleep(60)")
    command = client.exec(box.id, ["python", "work/w.py"])
    with pytest.raises(Conflict) as caught:
        client.exec(box.id, ["python", "work/w.py"])
    assert caught.value.code == "busy"
    client.cancel(command)


def test_one_key_runs_a_command_once_from_many_threads(client: SandboxClient, box: Sandbox, daemon: Sandboxd) -> None:
    client.put_file(box.id, "work/n.py", b"open('work/n.txt','a').write('x')")
    client.start(box.id)
    key, answers = new_key(), []

    def call() -> None:
        other = SandboxClient(daemon.socket)
        answers.append(other.exec(box.id, ["python", "work/n.py"], key=key))
        other.close()

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(answers)) == 1
    while not client.poll(answers[0], wait=10).complete:
        pass
    assert client.get_file(box.id, "work/n.txt") == b"x"


def test_deleted_inputs_come_back_and_work_may_go(client: SandboxClient, box: Sandbox) -> None:
    client.put_file(box.id, "inputs/data.csv", b"precious")
    client.put_file(box.id, "work/junk.txt", b"junk")
    done = run(
        client, box, "import os, shutil; shutil.rmtree('inputs', ignore_errors=True); os.unlink('work/junk.txt')"
    )
    assert done.report is not None and done.report["restored"] == ["inputs/data.csv"]
    assert client.get_file(box.id, "inputs/data.csv") == b"precious"
    assert [file["path"] for file in client.files(box.id)] == ["inputs/data.csv", "work/script.py"]


def test_the_quota_ends_a_command_that_fills_the_workspace(client: SandboxClient, box: Sandbox) -> None:
    script = (
        "import time\nfor n in range(40):\n    open(f'work/{n}.bin','wb').write(b'x' * (1 << 20)); time.sleep(0.05)"
    )
    done = run(client, box, script)
    assert done.state == "failed" and "8,388,608 bytes" in (done.reason or "")


def test_memory_and_processes_are_bounded_and_the_daemon_says_so(client: SandboxClient, box: Sandbox) -> None:
    done = run(client, box, "x = bytearray(4 << 30)")
    assert done.state in ("exited", "failed") and done.exit_code != 0
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    done = run(client, box, bomb, timeout=3)
    assert done.state in ("timed_out", "failed", "exited")
    assert run(client, box, "print('well')").stdout == b"well\n"


def test_secrets_in_arguments_are_not_in_the_record(client: SandboxClient, box: Sandbox) -> None:
    client.put_file(box.id, "work/s.py", b"import sys; print(len(sys.argv))")
    client.run(box.id, ["python", "work/s.py", "--password=hunter2-hunter2"])
    newest = client.commands(box.id)[0]
    assert "--password" in str(newest) and "hunter2" not in str(newest)


def test_policy_v1_looks_at_files_and_runs_nothing_else(client: SandboxClient) -> None:
    box = client.create("looking", "sandbox-policy-v1")
    client.put_file(box.id, "inputs/t.csv", b"a,b\n1,2\n3,4\n")
    found = client.inspect(box.id, "inputs/t.csv")
    assert found["kind"] == "csv" and found["size"] == 12
    client.put_file(box.id, "work/a.py", b"print(1)")
    with pytest.raises(Conflict) as caught:
        client.exec(box.id, ["python", "work/a.py"])
    assert caught.value.code == "policy_forbids_commands"
