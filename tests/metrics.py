"""What the example `metrics` tells Prometheus, read by the parser of Prometheus' own client library.

usage: metrics.py METRICS PLAN
"""
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

THREADS, RUNS = 3, 40


def scrape(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain"), answer.headers
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {family.name: family for family in families}


def value(families, name, sample=None, **labels):
    found = [s.value for s in families[name].samples if s.name == (sample or name) and labels.items() <= s.labels.items()]
    assert len(found) == 1, (name, sample, labels, found)
    return found[0]


def wait_for_runs(url, n):
    end = time.monotonic() + 60
    while True:
        families = scrape(url)
        if value(families, "zc_run_seconds", "zc_run_seconds_count") == n:
            return families
        assert time.monotonic() < end, "the runs do not end"
        time.sleep(0.02)


def check(families, plan):
    assert all(s.labels["plan"] == plan for family in families.values() for s in family.samples)
    times = families["zc_run_seconds"]
    assert times.type == "histogram"
    buckets = [s for s in times.samples if s.name == "zc_run_seconds_bucket"]
    bounds, counts = [float(s.labels["le"]) for s in buckets], [s.value for s in buckets]
    assert len(buckets) == 26 and bounds == sorted(bounds) and bounds[-1] == float("inf")
    assert counts == sorted(counts) and counts[-1] == THREADS * RUNS
    assert 0 < value(families, "zc_run_seconds", "zc_run_seconds_sum") < 60
    errors = families["zc_run_errors"]
    assert errors.type == "counter" and sum(s.value for s in errors.samples) == 0
    assert {"input", "timeout", "device_lost"} <= {s.labels["status"] for s in errors.samples}, errors.samples
    assert value(families, "zc_shapes_planned", "zc_shapes_planned_total") == THREADS
    assert families["zc_sessions"].type == "gauge"


def wait_for_sessions_to_go(url):
    end = time.monotonic() + 60
    while value(families := scrape(url), "zc_sessions") > 0:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert value(families, "zc_session_memory_bytes") == 0


def main():
    program, plan = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        hostile = str(pathlib.Path(folder) / 'a "plan"\n\\ of digits')
        shutil.copy(plan, hostile)
        service = subprocess.Popen([program, hostile, str(THREADS), str(RUNS)], stdout=subprocess.PIPE, text=True)
        try:
            url = service.stdout.readline().strip()
            check(wait_for_runs(url, THREADS * RUNS), hostile)
            wait_for_sessions_to_go(url)
            try:
                scrape(url + "/other")
                raise AssertionError("another page is there")
            except urllib.error.HTTPError as e:
                assert e.code == 404
        finally:
            service.send_signal(signal.SIGTERM)
        assert service.wait(timeout=60) == 0
    assert subprocess.run([program, "no such plan", "1", "1"], capture_output=True).returncode == 1


if __name__ == "__main__":
    main()
