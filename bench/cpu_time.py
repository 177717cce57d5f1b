"""Times builds of zc and ONNX Runtime on a CPU that others use, too: processor time of one thread, in turn.

usage: python3 bench/cpu_time.py ROUNDS SECONDS ZC[,ZC...] FOLDER...
Folders are those of zoo.py: model.onnx and test_data_set_0. In each round each build runs a model for SECONDS, `zc bench --processor-time`,
and so does ONNX Runtime. Others make a run longer, never shorter: what counts is the least time of a run in all rounds. Prints
for each model these in ms, each build's ratio to ONNX Runtime (above 1: zc is faster) with the least and greatest of the rounds', and the
geometric means.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import onnx
import onnxruntime
from onnx import numpy_helper


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
    end, times = time.monotonic() + seconds, []
    while len(times) < 3 or time.monotonic() < end:
        start = time.process_time()
        session.run(None, feeds)
        times.append(time.process_time() - start)
    return min(times) * 1e3


def time_zc(zc: str, plan: str, folder: pathlib.Path, seconds: float) -> float:
    command = [zc, "bench", plan, "--inputs", str(folder / "test_data_set_0"), "--threads", "1", "--seconds", str(seconds),
               "--warmup", "2", "--iterations", "3", "--processor-time", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["min_ms"]


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
                ours[i].append(time_zc(zc, f"{scratch}/{i}", folder, seconds))
    ratios = [[b / a for a, b in zip(times, theirs)] for times in ours]
    least = [min(theirs) / min(times) for times in ours]
    cells = [f"{min(t):.2f}" for t in [*ours, theirs]]
    cells += [f"{all_rounds:.2f} ({min(r):.2f}-{max(r):.2f})" for all_rounds, r in zip(least, ratios)]
    print(f"| {folder.name} | {' | '.join(cells)} |", flush=True)
    return least


def main() -> None:
    rounds, seconds, builds = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3].split(",")
    ratios = [compare(builds, rounds, seconds, pathlib.Path(folder)) for folder in sys.argv[4:]]
    means = [f"{statistics.geometric_mean(of_build):.3f}" for of_build in zip(*ratios)]
    print(f"\n{len(ratios)} models, geometric means {' '.join(means)}")


if __name__ == "__main__":
    main()
