"""Kinds whose children misbehave. Each job of theirs ends once, whichever way."""

from __future__ import annotations

from random import Random

from musterd import Client
from musterd.store.errors import StoreUnavailable
from tests.neighbours.scene import Act, Scene

HANDLERS = '''
import ctypes, os, random, signal, socket, subprocess, sys, threading, time

def files():
    return [int(name) for name in os.listdir("/proc/self/fd")]

def garbage_on_all_files(job):
    for file in files():
        try:
            os.write(file, random.randbytes(300))
        except OSError:
            pass
    time.sleep(0.1)

def frames_of_nobody(job):
    """Well-made messages about no claim."""
    for file in files():
        try:
            with socket.socket(fileno=os.dup(file)) as there:
                there.send(bytes(3) + b"\\x02" + bytes(7) + b"\\x01" + bytes(24) + b"{}")
        except OSError:
            pass
    time.sleep(0.1)

def forks_and_returns(job):
    if os.fork() == 0 and random.random() < 0.5:
        sys.exit(3)
    return "one of two"

def exits(job):
    os._exit(random.choice((0, 1, 75, 255)))

def raises_exit(job):
    raise SystemExit(0)

def closes_files(job):
    os.closerange(3, 200)
    return "closed"

def grandchild_that_stays(job):
    subprocess.Popen(["sleep", "3"], close_fds=False)
    return "left one behind"

def own_session(job):
    subprocess.Popen(["sleep", "2"], start_new_session=True, close_fds=False)

def prints_much(job):
    for _ in range(200):
        print("x" * 10_000)

def huge_result(job):
    return "y" * 5_000_000

def odd_result(job):
    return random.choice((float("nan"), "\\ud800", "a\\0b", {1: 2}, object(), 10**5_000))

def odd_notes(job):
    for percent in (float("nan"), -5, 10**400, 50):
        try:
            job.progress(percent, "\\ud800" * 5_000)
        except Exception:
            pass

def many_notes(job):
    for number in range(20_000):
        job.progress(number % 100, str(number))

def odd_spending(job):
    for amount in (1e308, 1e308, 5):
        job.spend(**{"a\\0b" if random.random() < 0.3 else "tokens": amount})

def kills_itself(job):
    os.kill(os.getpid(), random.choice((signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM)))
    time.sleep(1)

def stops_itself(job):
    os.kill(os.getpid(), signal.SIGSTOP)

def crashes(job):
    ctypes.string_at(0)

def thread_that_speaks_later(job):
    def later():
        time.sleep(0.3)
        job.progress(99, "late")
        print("late")
    threading.Thread(target=later).start()

def deep_error(job):
    raise ValueError("z" * 3_000_000 + "\\ud800")

def deaf_to_term(job):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(20)
'''
PROGRAMS = {
    "prints-garbage": "head -c 300000 /dev/urandom",
    "closes-stdout": "exec 1>&- 2>&- 3>&-; sleep 0.1",
    "leaves-one": "sleep 5 & echo 1",
    "garbage-notes": "head -c 200000 /dev/urandom >&3; echo 1",
    "odd-notes": """for each in '{"percent": NaN}' '{"spent": {"a": 1e999}}' 101%; """
    "do echo $each >&3; done",
    "kills-itself": "kill -SEGV $$",
    "forks-much": "for i in 1 2 3 4 5 6 7 8; do sleep 4 & done; exit 3",
    "stops-itself": "kill -STOP $$",
}
LIMITS = "time_limit_seconds = 2\ngrace_seconds = 0.5\n"
NAMES = [line.split()[1].partition("(")[0] for line in HANDLERS.splitlines() if "(job):" in line]
PYTHON = {name.replace("_", "-"): name for name in NAMES}
KINDS = "".join(
    f'[kinds.{kind}]\npython = "hostile:{name}"\n{LIMITS}' for kind, name in PYTHON.items()
) + "".join(
    f"[kinds.program-{kind}]\ncommand = ['sh', '-c', '''{line}''']\n{LIMITS}"
    for kind, line in PROGRAMS.items()
)
ALL = (*PYTHON, *(f"program-{kind}" for kind in PROGRAMS))


def misbehave(scene: Scene, rng: Random) -> None:
    """Jobs of some of these kinds."""
    with Client(scene.innocents.url) as client:
        for _ in range(rng.randint(4, 12)):
            try:
                scene.strangers.append(client.enqueue(rng.choice(ALL)))
            except StoreUnavailable:
                continue  # its store is in other hands
            scene.wait(rng.uniform(0, 0.1))


CHILDREN: tuple[Act, ...] = (misbehave,)
