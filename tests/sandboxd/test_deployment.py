"""sandboxd as it is deployed: without root, under the shipped unit's settings, and in a container of its own."""

from __future__ import annotations

import grp
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from learngraph_kernel.sandbox.answers import NotReady
from learngraph_kernel.sandbox.client import SandboxClient, SandboxUnavailable
from learngraph_kernel.sandboxd.settings import Settings, load_settings
from tests.sandboxd.running import REPOSITORY, Sandboxd

DEPLOY = REPOSITORY / "sandbox-image" / "deploy"
UID = 43210

AS_A_USER = """
import sys
from pathlib import Path
from learngraph_kernel.sandbox.client import SandboxClient
client = SandboxClient(Path(sys.argv[1]))
box = client.create("s").id
client.put_file(box, "work/a.py", b"open('outputs/x.txt', 'w').write('hi')\\nprint('made')")
done = client.run(box, ["python", "work/a.py"])
assert (done.exit_code, done.stdout) == (0, b"made\\n"), done
client.put_file(box, "outputs/kept.txt", b"kept")
client.put_file(box, "work/b.py", b"import os\\nos.remove('outputs/kept.txt')")
done = client.run(box, ["python", "work/b.py"])
assert done.report["restored"] == ["outputs/kept.txt"], done.report
assert client.get_file(box, "outputs/x.txt") == b"hi" and client.get_file(box, "outputs/kept.txt") == b"kept"
client.stop(box)
assert client.run(box, ["python", "work/a.py"]).stdout == b"made\\n"
kernel = client.start_kernel("r_1")
client.stop_kernel(kernel)
client.delete(box)
client.shut_down()
print("all of it")
"""


@pytest.fixture
def python_for_all() -> list[str]:
    """An interpreter that another uid can start, with our packages."""
    path = os.pathsep.join([str(REPOSITORY), sysconfig.get_path("purelib")])
    for program in (sys.executable, "/usr/bin/python3"):
        words = ["-c", "import sys, docker, learngraph_kernel; print(sys.version_info[:2])"]
        as_user: dict[str, Any] = {"user": UID, "group": UID, "extra_groups": [], "cwd": "/"}
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path}
        try:
            found = subprocess.run([program, *words], capture_output=True, text=True, env=environment, **as_user)
        except OSError:
            continue  # it is not there, or lies where others may not go
        if found.stdout.strip() == str(sys.version_info[:2]):
            return ["env", f"PYTHONPATH={path}", program]
    pytest.skip("NO PYTHON FOR OTHER USERS: this one, or its packages, lie in a folder that only root enters")


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="lg-u"))
    path.chmod(0o755)
    os.chown(path, UID, UID)
    yield path
    shutil.rmtree(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT ROOT: cannot become another user")
def test_a_user_of_the_docker_group_runs_all_of_it(
    python_for_all: list[str], folder: Path, docker_engine: object, sandbox_image: str
) -> None:
    try:
        docker = grp.getgrnam("docker").gr_gid
    except KeyError:
        pytest.skip("NO GROUP docker: nobody but root may use the engine")
    (folder / "sandboxd.toml").write_text(f'[sandbox]\nimage = "{sandbox_image}"\ndisk_kept = 0\nwarm_kernels = 1\n')
    socket = folder / "s.sock"
    words = ["--config", folder / "sandboxd.toml", "--state", folder / "state", "--socket", socket]
    command = [*python_for_all, "-m", "learngraph_kernel.cli", "sandboxd", *map(str, words)]
    as_user: dict[str, Any] = {"user": UID, "group": docker, "extra_groups": [], "cwd": "/"}
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LEARNGRAPH_HOME": str(folder / "home")}
    log = folder / "log"
    with log.open("wb") as file:
        daemon = subprocess.Popen(command, stdout=file, stderr=file, env=environment, **as_user)
    deadline = time.monotonic() + 30
    while not socket.exists():
        assert daemon.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    client = [*python_for_all, "-c", AS_A_USER, str(socket)]
    done = subprocess.run(
        client, capture_output=True, text=True, env=environment, user=UID, group=UID, extra_groups=[], check=False
    )
    assert done.stdout == "all of it\n", done.stderr + log.read_text()
    assert daemon.wait(30) == 0


def test_the_unit_is_one_that_systemd_reads(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("NO systemd-analyze: the unit is not verified")
    done = subprocess.run([program, "verify", DEPLOY / "sandboxd.service"], capture_output=True, text=True, check=False)
    ours = [line for line in done.stderr.splitlines() if "sandboxd.service" in line and "docker.service" not in line]
    assert ours == []


def test_the_shipped_settings_are_settings_and_close_the_way_out(
    base: Path, docker_engine: object, sandbox_image: str
) -> None:
    settings = load_settings(DEPLOY / "sandboxd.toml", Settings.under(base / "shipped"))
    assert (settings.admit, settings.egress) == ("group", False)
    with Sandboxd(base / "closed", sandbox_image, admit=settings.admit, egress=settings.egress) as daemon:
        client = SandboxClient(daemon.socket)
        with pytest.raises(NotReady) as caught:
            client.allow_egress(client.create("s").id, ["files.example"])
        assert caught.value.code == "egress_off" and caught.value.remedy and caught.value.details["zh"]
        client.close()


def test_the_daemon_works_in_a_container_as_the_compose_file_puts_it(docker_engine: object, sandbox_image: str) -> None:
    """The service of the compose file, started by the engine; our packages are mounted instead of installed."""
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["sandboxd"]
    folder = Path(tempfile.mkdtemp(prefix="lg-c"))
    name = f"lg-test-sandboxd-{os.getpid()}"
    socket = folder / "run" / "sandboxd.sock"
    for part in ("state", "run"):
        (folder / part).mkdir()
    config = (DEPLOY / "sandboxd.toml").read_text() + f'image = "{sandbox_image}"\ndisk_kept = 0\n'
    (folder / "sandboxd.toml").write_text(config)
    options = ["--network", service["network_mode"], "--pid", service["pid"], "--read-only", "--user", "0:0"]
    options += [word for item in service["security_opt"] for word in ("--security-opt", item)]
    options += [word for item in service["cap_drop"] for word in ("--cap-drop", item)]
    options += [word for item in service["cap_add"] for word in ("--cap-add", item)]
    # What the site's own image would have: an interpreter and our packages. Here they are this machine's.
    interpreter = Path(os.path.realpath(sys.executable))
    packages = sysconfig.get_path("purelib")
    places = ["/var/run/docker.sock", "/tmp", str(REPOSITORY), packages, str(interpreter.parents[1])]
    options += [word for place in dict.fromkeys(places) for word in ("--volume", f"{place}:{place}")]
    words = ["sandboxd", "--config", folder / "sandboxd.toml", "--state", folder / "state", "--socket", socket]
    path = os.pathsep.join([str(REPOSITORY), packages])
    command = ["docker", "run", "--detach", "--name", name, *options, "--env", f"PYTHONPATH={path}", "--entrypoint", ""]
    command += [sandbox_image, str(interpreter), "-m", "learngraph_kernel.cli", *map(str, words)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
        client = SandboxClient(socket)
        deadline = time.monotonic() + 40
        while True:
            try:
                client.health()
                break
            except SandboxUnavailable:
                said = subprocess.run(["docker", "logs", name], capture_output=True, text=True, check=False)
                assert time.monotonic() < deadline, said.stdout + said.stderr
        box = client.create("s").id
        client.put_file(box, "work/a.py", b"print('from a container beside this one')")
        assert client.run(box, ["python", "work/a.py"]).stdout == b"from a container beside this one\n"
        kernel = client.start_kernel("r_1")
        assert kernel.state == "running"
        client.stop_kernel(kernel)
        client.delete(box)
        client.shut_down()
        client.close()
    finally:
        subprocess.run(["docker", "stop", "--time", "30", name], capture_output=True, check=False)
        subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=False)
        shutil.rmtree(folder)
