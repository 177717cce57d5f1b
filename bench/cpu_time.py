"""Times builds of zc and ONNX Runtime on a CPU that others use, too: processor time of one thread, in turn.

usage: python3 bench/cpu_time.py ROUNDS SECONDS ZC[,ZC...] FOLDER...
Folders are those of zoo.py: model.onnx and test_data_set_0. A build's time is the difference of `zc bench` with few and with more runs, about
SECONDS of them. Prints for each model the medians in ms, each build's ratio to ONNX Runtime (the median of the
rounds', above 1: zc is faster) with the least and greatest, and the geometric means.
"""

import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import onnx
import onnxruntime
from onnx import numpy_helper

FEW = 2


def session_of(folder: pathlib.Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])


def read_inputs(folder: pathlib.Path, session: onnxruntime.InferenceSession) -> dict:
    feeds = {}
    for i, value in enumerate(session.get_inputs()):
        proto = onnx.TensorProto()
        proto.ParseFromString((folder / "test_data_set_0" / f"input_{i}.pb").read_bytes())
        feeds[value.name] = numpy_helper.to_array(proto)
    return feeds


def time_ort(session: onnxruntime.InferenceSession, feeds: dict, seconds: float) -> float:
    start, n = time.process_time(), 0
    while n < 3 or time.process_time() - start < seconds:
        session.run(None, feeds)
        n += 1
    return (time.process_time() - start) / n * 1e3


def spent(zc: str, plan: str, folder: pathlib.Path, runs: int) -> float:
    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    before = used()
    subprocess.run([zc, "bench", plan, "--inputs", str(folder / "test_data_set_0"), "--threads", "1", "--seconds", "0",
                    "--warmup", "2", "--iterations", str(runs), "--json"], check=True, capture_output=True)
    return used() - before


def time_zc(zc: str, plan: str, folder: pathlib.Path, runs: int) -> float:
    return (spent(zc, plan, folder, FEW + runs) - spent(zc, plan, folder, FEW)) / runs * 1e3


def compare(builds: list[str], rounds: int, seconds: float, folder: pathlib.Path) -> list[float]:
    session = session_of(folder)
    feeds = read_inputs(folder, session)
    session.run(None, feeds)
    theirs: list[float] = []
    ours: list[list[float]] = [[] for _ in builds]
    with tempfile.TemporaryDirectory() as scratch:
        for i, zc in enumerate(builds):
            subprocess.run([zc, "compile", str(folder / "model.onnx"), "-o", f"{scratch}/{i}", "--quiet"], check=True)
        for _ in range(rounds):
            theirs.append(time_ort(session, feeds, seconds))
            for i, zc in enumerate(builds):
                guess = max(ours[i][-1] if ours[i] else theirs[-1], 0.01) / 1e3
                ours[i].append(time_zc(zc, f"{scratch}/{i}", folder, max(2, int(seconds / guess))))
    ratios = [[b / a for a, b in zip(times, theirs)] for times in ours]
    cells = [f"{statistics.median(t):.2f}" for t in [*ours, theirs]]
    cells += [f"{statistics.median(r):.2f} ({min(r):.2f}-{max(r):.2f})" for r in ratios]
    print(f"| {folder.name} | {' | '.join(cells)} |", flush=True)
    return [statistics.median(r) for r in ratios]


def main() -> None:
    rounds, seconds, builds = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3].split(",")
    ratios = [compare(builds, rounds, seconds, pathlib.Path(folder)) for folder in sys.argv[4:]]
    means = [f"{statistics.geometric_mean(of_build):.3f}" for of_build in zip(*ratios)]
    print(f"\n{len(ratios)} models, geometric means {' '.join(means)}")


if __name__ == "__main__":
    main()
