"""Times zc and ONNX Runtime on the CPU: same model files, same inputs, same threads, interleaved in one run.

usage: python3 bench/cpu_vs_ort.py ZC THREADS ROUNDS SECONDS FOLDER...
Each folder holds model.onnx and test_data_set_0/input_<k>.pb (zoo.py and models/bench/fill.py make such). A round times
both for SECONDS each. Needs the packages onnx and onnxruntime. Prints a row of a table for each model, the slowest
beside ONNX Runtime first: medians over all rounds, the median of the rounds' ratios (above 1: zc is faster), and their
geometric mean.
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


def read_inputs(folder: pathlib.Path, session: onnxruntime.InferenceSession) -> dict:
    feeds = {}
    for i, value in enumerate(session.get_inputs()):
        proto = onnx.TensorProto()
        proto.ParseFromString((folder / "test_data_set_0" / f"input_{i}.pb").read_bytes())
        feeds[value.name] = numpy_helper.to_array(proto)
    return feeds


def time_ort(folder: pathlib.Path, threads: int, seconds: float) -> float:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    feeds = read_inputs(folder, session)
    for _ in range(3):
        session.run(None, feeds)
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        session.run(None, feeds)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3  # the session ends here: its threads must not spin while zc is timed


def time_zc(zc: str, plan: str, folder: pathlib.Path, threads: int, seconds: float) -> float:
    command = [zc, "bench", plan, "--inputs", str(folder / "test_data_set_0"), "--threads", str(threads),
               "--seconds", str(seconds), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["median_ms"]


def compare(zc: str, threads: int, rounds: int, seconds: float, folder: pathlib.Path) -> tuple[float, str]:
    with tempfile.TemporaryDirectory() as scratch:
        plan = f"{scratch}/model.plan"
        subprocess.run([zc, "compile", str(folder / "model.onnx"), "-o", plan, "--quiet"], check=True,
                       capture_output=True, text=True)
        theirs, ours = [], []
        for _ in range(rounds):
            theirs.append(time_ort(folder, threads, seconds))
            ours.append(time_zc(zc, plan, folder, threads, seconds))
    ratios = [b / a for a, b in zip(ours, theirs)]
    ratio = statistics.median(ratios)
    return ratio, (f"| {folder.name} | {statistics.median(ours):.2f} | {statistics.median(theirs):.2f} | {ratio:.2f} "
                   f"| {min(ratios):.2f}-{max(ratios):.2f} |")


def main() -> None:
    zc, threads, rounds, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    rows = []
    for folder in map(pathlib.Path, sys.argv[5:]):
        try:
            rows.append(compare(zc, threads, rounds, seconds, folder))
            print(rows[-1][1], file=sys.stderr, flush=True)
        except subprocess.CalledProcessError as error:
            print(f"{folder.name}: {error.stderr.strip()}", file=sys.stderr, flush=True)
    print(f"onnxruntime {onnxruntime.__version__}, {threads} threads, {rounds} rounds of {seconds} s each\n")
    print("| model | zc ms | ORT ms | ORT/zc | rounds |\n|---|---|---|---|---|")
    for _, row in sorted(rows):
        print(row)
    print(f"\n{len(rows)} models, geometric mean {statistics.geometric_mean(r for r, _ in rows):.2f}")


if __name__ == "__main__":
    main()
