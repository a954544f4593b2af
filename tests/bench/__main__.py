"""`make bench`: every benchmark, one after the other."""

from __future__ import annotations

from tests.bench import bench_evidence, bench_run

if __name__ == "__main__":
    bench_run.main()
    bench_evidence.main()
