#!/usr/bin/env python3
"""Model files in zc, ONNX Runtime and PyTorch: the same file, inputs and threads, in turn, each engine in processes of its own.

usage: compare.py --zc ZC [--device cpu|cuda] [--precision TYPE] [--threads N] [--dim NAME=VALUE]... [--inputs DIR]
                  [--providers CPU,CUDA,Tensorrt] [--pytorch eager,default,max-autotune] [--rounds N] [--seconds S]
                  [--save DIR] [--json FILE] MODEL.onnx...

The device and the precision are zc's and PyTorch's. On a GPU inputs and outputs stay there in all engines, and PyTorch is replayed as a
CUDA graph. Providers are ONNX Runtime's, as its package has them: TensorRT's engines are built by Tensorrt. PyTorch reads
the file by the package onnx2torch, in the modes of torch.compile that are named.

A round times every engine for S seconds. A row of the table, and of the JSON, is an engine's: the median of its runs and
what 99 of 100 of them are within; the median of the rounds' ratios to zc's (above 1: zc is faster); seconds to compile
(ONNX Runtime: to create the session; PyTorch: to read the model) and until the first result is there (zc: of `zc run` with the plan, as a process);
the most memory that its process held on the host (without what Python and its packages had before); joules a run, where Linux's counters of the CPU's packages can be read; and how far
its outputs are from those of ONNX Runtime in f32 without any optimisation: the greatest difference, over the greatest
value of the output. --save writes times for `zc report DIR/*.times -o page.html`. Inputs that neither DIR has nor test_data_set_0 beside the
model are random. An engine that fails has a row that says why, and the exit status is 1. Last comes the geometric mean of all models' ratios."""

import argparse
import hashlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

RUNS_KEPT = 3000  # of a file of times, at most
PACKAGES = pathlib.Path("/sys/class/powercap")


def joules():
    """Of all the CPU's packages so far; None: unreadable."""
    try:
        zones = [z for z in PACKAGES.glob("intel-rapl:*") if z.name.count(":") == 1]
        return sum(int((z / "energy_uj").read_text()) for z in zones) / 1e6 if zones else None
    except (OSError, ValueError):
        return None


def memory_mb(key, process="self"):
    """Of a process, now (VmRSS) or at most so far (VmHWM); 0 where it has ended."""
    lines = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(key + ":")), 0)


# ---- ONNX Runtime, in a process of its own ----

TYPES = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64", "tensor(int64)": "int64",
         "tensor(int32)": "int32", "tensor(bool)": "bool"}


def open_session(model, threads, provider, optimised=True):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    if not optimised:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(model), options, providers=[provider + "ExecutionProvider"])
    if session.get_providers()[0] != provider + "ExecutionProvider":
        raise SystemExit(f"onnxruntime has no provider {provider} here")
    return session


def feeds_of(session, inputs):
    import numpy as np
    return {x.name: np.load(inputs / f"input_{i}.npy") for i, x in enumerate(session.get_inputs())}


def measure(job, prepare):
    """One round: what is known of it as an object; outputs as files. prepare() gives what makes the first run ready, which gives
    the run and what fetches its results."""
    own, begin = memory_mb("VmRSS"), time.perf_counter()
    ready = prepare()
    compiled = time.perf_counter()
    run, results = ready()
    run()
    outputs = results()
    first, ms, before = time.perf_counter(), [], joules()
    while time.perf_counter() < first + job["seconds"] or len(ms) < 5:
        start = time.perf_counter()
        run()
        ms.append((time.perf_counter() - start) * 1e3)
    after = joules()
    save_outputs(outputs, job["outputs"])
    return {"ms": ms, "compile_s": compiled - begin, "first_s": first - begin, "peak_mb": memory_mb("VmHWM") - own,
            "joules": None if before is None else (after - before) / len(ms)}


def measure_onnxruntime(job):
    import onnxruntime as ort  # (is no part of what is timed)

    def prepare():
        session = open_session(job["model"], job["threads"], job["provider"])
        return lambda: ready(session, "cpu" if job["provider"] == "CPU" else "cuda")

    def ready(session, device):
        feeds = {name: ort.OrtValue.ortvalue_from_numpy(x, device, 0) for name, x in feeds_of(session, pathlib.Path(job["inputs"])).items()}
        return on_host(session, feeds) if device == "cpu" else on_gpu(session, feeds)

    def on_host(session, feeds):  # (bound outputs have to be of the ranks that the model declares, wrongly at times)
        kept = {}
        return lambda: kept.update(y=session.run_with_ort_values(None, feeds)), lambda: [y.numpy() for y in kept["y"]]

    def on_gpu(session, feeds):
        binding = session.io_binding()
        for name, x in feeds.items():
            binding.bind_ortvalue_input(name, x)
        for y in session.get_outputs():
            binding.bind_output(y.name, "cuda")

        def run():
            session.run_with_iobinding(binding)
            binding.synchronize_outputs()
        return run, binding.copy_outputs_to_cpu
    return measure(job, prepare)


# ---- PyTorch, likewise ----

def measure_pytorch(job):
    import numpy as np
    import onnx
    import onnx2torch
    import torch

    from compare_cases import graph_of, in_mode
    device, half = job["device"], job["precision"] == "f16"
    torch.set_num_threads(job["threads"])
    torch.set_grad_enabled(False)

    def prepare():
        source = onnx.load(job["model"])
        known = {x.name for x in source.graph.initializer}
        names = [x.name for x in source.graph.input if x.name not in known]
        model = onnx2torch.convert(source).to(device).eval()
        model = in_mode(model.half() if half else model, job["mode"])
        return lambda: ready(model, [given(i) for i in range(len(names))])

    def given(i):
        x = torch.from_numpy(np.load(pathlib.Path(job["inputs"]) / f"input_{i}.npy")).to(device)
        return x.half() if half and x.is_floating_point() else x

    def ready(model, inputs):
        if device == "cpu":
            kept = {}
            return lambda: kept.update(y=model(*inputs)), lambda: arrays(kept["y"])
        graph, y = graph_of(model, inputs)

        def run():
            graph.replay()
            torch.cuda.synchronize()
        return run, lambda: arrays(y)

    def arrays(y):
        return [t.cpu().numpy() for t in (y if isinstance(y, (tuple, list)) else (y,))]
    return measure(job, prepare)


def save_outputs(results, folder):
    import numpy as np
    for i, y in enumerate(results):
        np.save(pathlib.Path(folder) / f"output_{i}.npy", y)


def make_reference(job):
    """Random inputs as far as none are given, and outputs without optimisations."""
    import numpy as np
    session = open_session(job["model"], job["threads"], "CPU", optimised=False)
    inputs, random = pathlib.Path(job["inputs"]), np.random.default_rng(1)
    for i, x in enumerate(session.get_inputs()):
        if (inputs / f"input_{i}.npy").exists():
            continue
        if x.type not in TYPES:
            raise SystemExit(f"{x.name}: no random values of {x.type}: --inputs has to give them")
        shape, kind = [d if isinstance(d, int) else job["dims"].get(d, 1) for d in x.shape], np.dtype(TYPES[x.type])
        values = random.uniform(-1, 1, shape) if kind.kind == "f" else random.integers(0, 2, shape)
        np.save(inputs / f"input_{i}.npy", values.astype(kind))
    save_outputs(session.run(None, feeds_of(session, inputs)), job["outputs"])
    return {}


WORK = {"onnxruntime": measure_onnxruntime, "pytorch": measure_pytorch, "reference": make_reference}


def in_process(work, **job):
    command = [sys.executable, __file__, work, json.dumps(job, default=str)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["it ended"])[-1])
    return json.loads(done.stdout)


# ---- engines ----

class Zc:
    name = "zc"

    def __init__(self, args, model, work):
        self.args, self.work, self.plan = args, work, work / "model.plan"
        dims = [o for dim in args.dim for o in ("--dim", dim)]
        target = ["--target", "native"] if args.device == "cuda" else []
        self.compile_s, _, _ = self.call("compile", model, "-o", self.plan, "--quiet", "--precision", args.precision, *target, *dims)
        self.common = ["--inputs", work / "inputs", "--threads", str(args.threads), "--device", args.device]
        self.timed = ["--no-transfers"] if args.device == "cuda" else []

    def call(self, *words):
        """Seconds, the most MB of memory, and what it printed."""
        begin = time.perf_counter()
        with tempfile.TemporaryFile("w+") as said, subprocess.Popen([self.args.zc, *map(str, words)], stdout=said, stderr=said) as zc:
            most = 0
            while zc.poll() is None:
                most = max(most, memory_mb("VmHWM", zc.pid))
                time.sleep(0.01)
            seconds = time.perf_counter() - begin
            said.seek(0)
            text = said.read()
        if zc.returncode:
            raise RuntimeError(text.strip())
        return seconds, most, text

    def round(self, seconds):
        folder, times = self.work / "zc", self.work / "zc.json"
        folder.mkdir(exist_ok=True)
        first, _, _ = self.call("run", self.plan, *self.common, "--output-dir", folder)
        _, peak, text = self.call("bench", self.plan, *self.common, *self.timed, "--seconds", seconds, "--json", "--export-times", times)
        cpu = json.loads(text[text.index("{"):])["energy"]["cpu"]
        return {"ms": [x["latencyMs"] for x in json.loads(times.read_text())], "compile_s": self.compile_s, "first_s": first,
                "peak_mb": peak, "joules": cpu and cpu["joules_per_run"]}


class InProcess:
    """An engine of WORK, in a process of its own each round."""

    def __init__(self, name, engine, args, model, work, **job):
        self.name, self.engine, self.work = name, engine, work
        self.job = {"model": model, "threads": args.threads, "inputs": work / "inputs", **job}

    def round(self, seconds):
        folder = self.work / self.name
        folder.mkdir(exist_ok=True)
        return in_process(self.engine, outputs=folder, seconds=seconds, **self.job)


def engines_of(args, model, work):
    providers = [InProcess(f"onnxruntime {p}", "onnxruntime", args, model, work, provider=p) for p in args.providers.split(",") if p]
    modes = [InProcess(f"PyTorch {mode}", "pytorch", args, model, work, mode=mode, device=args.device, precision=args.precision)
             for mode in args.pytorch.split(",") if mode]
    return [Zc(args, model, work), *providers, *modes]


# ---- comparing ----

def error(folder, reference):
    import numpy as np
    from errors import relative
    names = [path.name for path in sorted(reference.glob("output_*.npy"))]
    return max((relative(np.load(folder / name), np.load(reference / name)) for name in names), default=0.0)


def summary(engine, rounds, zc_rounds, work):
    ms = sorted(t for r in rounds for t in r["ms"])
    ratios = [statistics.median(r["ms"]) / statistics.median(z["ms"]) for r, z in zip(rounds, zc_rounds)]
    first = {key: statistics.median(r[key] for r in rounds) for key in ("compile_s", "first_s")}
    energy = [r["joules"] for r in rounds if r["joules"] is not None]
    return {"engine": engine.name, "runs": len(ms), "median_ms": statistics.median(ms), "p99_ms": ms[int(0.99 * (len(ms) - 1))],
            "ratio": statistics.median(ratios), **first, "peak_mb": max(r["peak_mb"] for r in rounds),
            "joules_per_run": statistics.median(energy) if energy else None, "error": error(work / engine.name, work / "reference")}


def name_of(model):
    return model.resolve().parent.name if model.stem == "model" else model.stem


def save_times(args, model, rows, times):
    from saved_times import write_times
    args.save.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    for row in rows:
        name, ms = row["engine"].replace(" ", "-"), times[row["engine"]]
        step = -(-len(ms) // RUNS_KEPT)
        write_times(args.save / f"{name_of(model)}.{name}.times", digest, args.device, row["engine"], ms[::step])


def copy_inputs(source, folder):
    """All that the folder has, as .npy."""
    import numpy as np
    for path in source.glob("input_*.pb"):
        import onnx
        np.save(folder / (path.stem + ".npy"), onnx.numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes())))
    for path in source.glob("input_*.npy"):
        np.save(folder / path.name, np.load(path))


def compare_file(args, model):
    with tempfile.TemporaryDirectory() as scratch:
        work = pathlib.Path(scratch)
        (work / "inputs").mkdir()
        (work / "reference").mkdir()
        copy_inputs(args.inputs or model.parent / "test_data_set_0", work / "inputs")
        dims = {name: int(size) for name, size in (dim.split("=") for dim in args.dim)}
        in_process("reference", model=model, threads=args.threads, dims=dims, inputs=work / "inputs", outputs=work / "reference")
        engines = engines_of(args, model, work)
        rounds, failures = in_turn(engines, args)
        if "zc" in failures:
            raise RuntimeError(failures["zc"])
        rows = [summary(e, rounds[e.name], rounds["zc"], work) for e in engines if e.name not in failures]
        if args.save:
            save_times(args, model, rows, {name: [t for r in rs for t in r["ms"]] for name, rs in rounds.items()})
        return rows + [{"engine": name, "failed": why} for name, why in failures.items()]


def in_turn(engines, args):
    """Each engine's rounds, and why some failed: these take no part in further ones."""
    rounds, failures = {e.name: [] for e in engines}, {}
    for turn in range(args.rounds):
        for e in engines if turn % 2 == 0 else reversed(engines):
            if e.name in failures:
                continue
            try:
                rounds[e.name].append(e.round(args.seconds))
            except (RuntimeError, OSError) as error:
                failures[e.name] = str(error)
    return rounds, failures


def print_rows(model, rows):
    for r in rows:
        if "failed" in r:
            print(f"{name_of(model)[:24]:24} {r['engine']:18} failed: {r['failed']}", flush=True)
            continue
        energy = "-" if r["joules_per_run"] is None else f"{r['joules_per_run']:.3g}"
        print(f"{name_of(model)[:24]:24} {r['engine']:18} {r['median_ms']:10.3f} {r['p99_ms']:10.3f} {r['ratio']:7.2f} {r['compile_s']:9.2f} "
              f"{r['first_s']:8.2f} {r['peak_mb']:9.1f} {energy:>8} {r['error']:9.1e}", flush=True)


def compare_files(args):
    import onnxruntime
    print(f"onnxruntime {onnxruntime.__version__}, {args.device}, {args.precision}, {args.threads} threads, {args.rounds} rounds of {args.seconds} s each")
    print(f"{'model':24} {'engine':18} {'median ms':>10} {'99 % ms':>10} {'to zc':>7} {'compile s':>9} {'first s':>8} {'memory MB':>9} "
          f"{'joules':>8} {'error':>9}")
    failed, all_rows = 0, {}
    for model in args.models:
        try:
            all_rows[str(model)] = compare_file(args, model)
            print_rows(model, all_rows[str(model)])
            failed += sum("failed" in r for r in all_rows[str(model)])
        except (RuntimeError, OSError) as e:
            failed += 1
            print(f"{model}: {e}", file=sys.stderr, flush=True)
    ratios = {}
    for r in (r for rows in all_rows.values() for r in rows if "ratio" in r):
        ratios.setdefault(r["engine"], []).append(r["ratio"])
    for engine, values in ratios.items():
        print(f"{engine} to zc: {statistics.geometric_mean(values):.2f} (geometric mean of {len(values)})")
    if args.json:
        args.json.write_text(json.dumps({"onnxruntime": onnxruntime.__version__, "threads": args.threads, "rounds": args.rounds,
                                         "seconds": args.seconds, "models": all_rows}, indent=1) + "\n")
    return 1 if failed else 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zc", required=True, help="the program zc")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["f32", "f16"], default="f32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=VALUE", help="the size of a symbolic dimension (default 1)")
    parser.add_argument("--inputs", type=pathlib.Path, metavar="DIR", help="input_<k>.npy or .pb")
    parser.add_argument("--providers", default="CPU", help="ONNX Runtime's, as in CPU,CUDA,Tensorrt; may be empty")
    parser.add_argument("--pytorch", default="", metavar="MODES", help="eager, default, max-autotune; none by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--save", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL.onnx")
    return parser.parse_args()


def main():
    return compare_files(arguments())


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in WORK:
        print(json.dumps(WORK[sys.argv[1]](json.loads(sys.argv[2]))))
    else:
        sys.exit(main())
