"""A SLURM of one node for a test: daemons of its own below a folder, on the loopback, stopped by their process ids."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

#: Debian package of each program that is needed
PACKAGES = {"slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client", "munged": "munge"}
#: jobs lose the variable SLURM_CONF, so the file must be where SLURM looks by itself
SYSTEM_CONF = Path("/etc/slurm/slurm.conf")

CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={home}/munge.sock
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd.log
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
MpiDefault=none
SwitchType=switch/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0,defer_batch=no
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=300
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=16000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def why_not() -> str | None:
    """What is missing for a SLURM here, or None."""
    missing = [package for program, package in PACKAGES.items() if shutil.which(program) is None]
    if missing:
        return f"needs SLURM: apt-get install --no-install-recommends {' '.join(missing)}"
    if os.geteuid() != 0:
        return "needs root: SLURM's daemons do"
    if SYSTEM_CONF.exists() and not SYSTEM_CONF.is_symlink():
        return f"a real SLURM is configured here ({SYSTEM_CONF})"
    return None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Slurm:
    """Start with `with Slurm(folder):`."""

    def __init__(self, home: Path):
        self.home = home
        self.host = socket.gethostname().split(".")[0]

    def __enter__(self) -> Slurm:
        for name in ("state", "spool", "munge"):
            (self.home / name).mkdir(parents=True, mode=0o700)
        conf = self.home / "slurm.conf"
        conf.write_text(CONF.format(host=self.host, home=self.home, control=free_port(), node=free_port()))
        SYSTEM_CONF.parent.mkdir(parents=True, exist_ok=True)
        SYSTEM_CONF.unlink(missing_ok=True)
        SYSTEM_CONF.symlink_to(conf)
        try:
            self._start(conf)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self, conf: Path) -> None:
        key = self.home / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        munge = [f"--key-file={key}", f"--socket={self.home}/munge.sock", f"--pid-file={self.home}/munged.pid"]
        munge += [f"--log-file={self.home}/munge/log", f"--seed-file={self.home}/munge/seed", "--force"]
        for command in (
            ["munged", *munge],
            ["slurmctld", "-f", str(conf), "-i"],
            ["slurmd", "-f", str(conf), "-N", self.host],
        ):
            subprocess.run(command, check=True, capture_output=True, timeout=30)
        until = time.monotonic() + 30
        while "idle" not in (state := self.ask("sinfo", "--noheader", "--format=%t")):
            if time.monotonic() > until:
                logs = "".join(path.read_text()[-2000:] for path in self.home.glob("*.log"))
                raise RuntimeError(f"SLURM did not come up: {state}\n{logs}")
            time.sleep(0.2)

    def ask(self, *command: str) -> str:
        """What a SLURM command prints."""
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout

    def __exit__(self, *_: object) -> None:
        for name in ("slurmd.pid", "slurmctld.pid", "munged.pid"):
            with contextlib.suppress(OSError, ValueError):
                os.kill(int((self.home / name).read_text()), signal.SIGTERM)
        if SYSTEM_CONF.is_symlink() and Path(os.readlink(SYSTEM_CONF)).parent == self.home:
            SYSTEM_CONF.unlink()
