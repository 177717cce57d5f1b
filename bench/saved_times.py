"""Times of other engines in the file that `zc bench --save` writes (docs/report.md), for `zc report A.times B.times`."""


def write_times(path, model, device, engine, milliseconds):
    """A run a line; model: the SHA-256 of the model file, by which zc's own times know it."""
    lines = ["zc-bench 1", f"model {model}", f"device {device}", f"engine {engine}", "transfers none"]
    path.write_text("\n".join(lines + [f"run {ms:.6f}" for ms in milliseconds]) + "\n")
