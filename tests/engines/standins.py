"""Stand-ins for the commands of LSF and PBS: they run the jobs on this machine and report them as the real ones do."""

from __future__ import annotations

import sys
from pathlib import Path

#: command -> what it does; `spool` holds <id>.args (the call), <id>.name and, once it has ended, <id>.status
COMMANDS = {
    "bsub": """
words = sys.argv[1:]
while words[0] in ("-J", "-o", "-e", "-env", "-q", "-P", "-W", "-n", "-R", "-cwd"):
    words = words[2:]
number = start(["sh", "-c", " ".join(words)], option("-J"))
print(f"Job <{number}> is submitted to queue <{option('-q')}>.")
""",
    "bjobs": """
for number, name in jobs():
    if option("-aJ").strip("*") in name:
        print(number, {None: "RUN", 0: "DONE"}.get(status(number), "EXIT"))
""",
    "bkill": "kill(sys.argv[1:])",
    "badmin": """
print("MBD configuration")
print(f"LSB_SHAREDIR = {spool}")
print(f"LSF_CONFDIR = {spool}")
""",
    "lsclusters": 'print("CLUSTER_NAME STATUS"); print("standin ok")',
    "qsub": """
print(start(["sh", sys.argv[-1]], option("-N")), ".standin", sep="")
""",
    "qstat": """
number = sys.argv[-1].removesuffix(".standin")
if not (spool / f"{number}.args").exists():
    sys.exit(f"qstat: Unknown Job Id {sys.argv[-1]}")
ended = status(number)
print(f"Job Id: {sys.argv[-1]}")
print("    job_state =", "R" if ended is None else "F")
if ended is not None:
    print("    Exit_status =", ended)
""",
    "qdel": "kill([job.removesuffix('.standin') for job in sys.argv[1:]])",
}

COMMON = """\
#!{python}
import os, signal, subprocess, sys, time
from pathlib import Path

spool = Path({spool!r})


def option(name):
    return sys.argv[sys.argv.index(name) + 1]


def jobs():
    return [(path.stem, path.read_text()) for path in sorted(spool.glob("*.name"))]


def status(number):
    path = spool / f"{{number}}.status"
    return int(path.read_text()) if path.exists() else None


def start(command, name):
    number = str(time.time_ns())
    (spool / f"{{number}}.args").write_text("\\n".join(sys.argv[1:]))
    if os.fork() == 0:  # outlives the command that submitted it, like a scheduler's job
        os.setsid()
        with open(spool / f"{{number}}.out", "w") as out:
            job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
            (spool / f"{{number}}.name").write_text(name)
            (spool / f"{{number}}.group").write_text(str(os.getpid()))
            ended = job.wait()
        finish(number, ended)
        os._exit(0)
    while not (spool / f"{{number}}.group").exists():
        time.sleep(0.01)
    return number


def finish(number, ended):
    (spool / f"{{number}}.tmp").write_text(str(ended))
    os.replace(spool / f"{{number}}.tmp", spool / f"{{number}}.status")


def kill(numbers):
    for number in numbers:
        os.killpg(int((spool / f"{{number}}.group").read_text()), signal.SIGKILL)
        finish(number, 137)

"""


def install(folder: Path) -> Path:
    """Put the commands into folder/bin and what LSF has in its configuration beside it. -> folder/bin"""
    spool, commands = folder / "spool", folder / "bin"
    for place in (spool, commands, spool / "lsbatch" / "standin" / "configdir"):
        place.mkdir(parents=True)
    (spool / "lsbatch" / "standin" / "configdir" / "lsb.params").write_text("DEFAULT_QUEUE = normal\n")
    for name, body in COMMANDS.items():
        path = commands / name
        path.write_text(COMMON.format(python=sys.executable, spool=str(spool)) + body, encoding="utf-8")
        path.chmod(0o755)
    return commands


def calls(folder: Path) -> list[list[str]]:
    """The arguments of every submission, oldest first."""
    return [path.read_text().split("\n") for path in sorted((folder / "spool").glob("*.args"))]
