"""Times zc and ONNX Runtime on the CPU, same model files, same inputs, same threads, interleaved in one run.

usage: python3 bench/cpu_vs_ort.py ZC THREADS ROUNDS FOLDER...
Each folder holds model.onnx and test_data_set_0/input_<k>.pb. Needs the packages onnx and onnxruntime. Prints one
row of a table a model: medians over all rounds, and their ratio (above 1: zc is faster).
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

SECONDS = 2.0


def read_inputs(folder: pathlib.Path, session: onnxruntime.InferenceSession) -> dict:
    feeds = {}
    for i, value in enumerate(session.get_inputs()):
        proto = onnx.TensorProto()
        proto.ParseFromString((folder / "test_data_set_0" / f"input_{i}.pb").read_bytes())
        feeds[value.name] = numpy_helper.to_array(proto)
    return feeds


def time_ort(session: onnxruntime.InferenceSession, feeds: dict) -> float:
    for _ in range(3):
        session.run(None, feeds)
    times, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        session.run(None, feeds)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def time_zc(zc: str, plan: str, folder: pathlib.Path, threads: int) -> float:
    command = [zc, "bench", plan, "--inputs", str(folder / "test_data_set_0"), "--threads", str(threads),
               "--seconds", str(SECONDS), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["median_ms"]


def compare(zc: str, threads: int, rounds: int, folder: pathlib.Path) -> str:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    with tempfile.TemporaryDirectory() as scratch:
        plan = f"{scratch}/model.plan"
        subprocess.run([zc, "compile", str(folder / "model.onnx"), "-o", plan, "--quiet"], check=True)
        ours, theirs = [], []
        for _ in range(rounds):
            session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options,
                                                   providers=["CPUExecutionProvider"])
            theirs.append(time_ort(session, read_inputs(folder, session)))
            del session  # its threads must not spin while zc is timed
            ours.append(time_zc(zc, plan, folder, threads))
    zc_ms, ort_ms = statistics.median(ours), statistics.median(theirs)
    spread = f"{min(ours):.2f}-{max(ours):.2f} | {min(theirs):.2f}-{max(theirs):.2f}"
    return f"| {folder.name} | {zc_ms:.2f} | {ort_ms:.2f} | {ort_ms / zc_ms:.2f} | {spread} |"


def main() -> None:
    zc, threads, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(f"onnxruntime {onnxruntime.__version__}, {threads} threads, {rounds} rounds of {SECONDS} s each\n")
    print("| model | zc ms | ORT ms | ORT/zc | zc range | ORT range |\n|---|---|---|---|---|---|")
    for folder in sys.argv[4:]:
        print(compare(zc, threads, rounds, pathlib.Path(folder)), flush=True)


if __name__ == "__main__":
    main()
