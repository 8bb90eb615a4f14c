"""Unpack a wheel and print how much anonymous memory that took at its peak, in KB (run by a test, as a process).

Arguments: the wheel, the directory to make, the number of threads (1).
"""

import hashlib
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from envdsl.graph.derivation import Unpack, WheelFile
from envdsl.realise.intake import open_wheel
from envdsl.realise.unpack import Unpacking


def anonymous() -> int:
    return int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0])


class Watch(threading.Thread):
    peak = 0
    done = False

    def run(self) -> None:
        while not self.done:
            self.peak = max(self.peak, anonymous())
            time.sleep(0.002)


wheel, root = map(Path, sys.argv[1:3])
threads = int(sys.argv[3]) if len(sys.argv) > 3 else 1
with wheel.open("rb") as file:
    digest = hashlib.file_digest(file, "sha256").hexdigest()
name, version = wheel.name.split("-")[:2]
unpack = Unpack(name, version, WheelFile(wheel.name, digest, wheel.stat().st_size))
root.mkdir()
before = anonymous()
watch = Watch()
watch.start()
with open_wheel(wheel, unpack) as intake:
    unpacking = Unpacking(intake, root)
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(unpacking.write, unpacking.batches):
            pass
    unpacking.finish()
watch.done = True
watch.join()
print(watch.peak - before)
