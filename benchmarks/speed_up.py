"""How long each study takes on 1 to 512 cores: its measured jobs, scheduled as Snakemake does.

    python benchmarks/speed_up.py

prints a table and draws docs/cluster-speed-up.png from results/jobs-<study>.csv (see jobs.py).

List scheduling: a job is ready when the jobs that it waits for have ended; whenever cores are free, the
ready job of the highest priority starts, after the main process has spent its hundredth of a second on
it. What the model leaves out: that cores share memory and caches.
"""

import heapq
import math

from jobs import ROOT, Job, read, studies
from measuring import table

CORES = [2**power for power in range(10)]
FIGURE = ROOT / "docs" / "cluster-speed-up.png"

DISPATCH = 0.012  # seconds of the main process for each job, one after another
START = 5.0  # seconds until Snakemake has read the workflow and knows its jobs


def wall(jobs: list[Job], cores: int, dispatch: float = DISPATCH) -> float:
    """Seconds from the first job's start to the last one's end on so many cores."""
    waits = [len(job.after) for job in jobs]
    followers: list[list[int]] = [[] for _ in jobs]
    for number, job in enumerate(jobs):
        for earlier in job.after:
            followers[earlier].append(number)
    ready = [(-job.priority, number) for number, job in enumerate(jobs) if not job.after]
    heapq.heapify(ready)
    running: list[tuple[float, int]] = []
    now = main_is_free = last = 0.0
    while ready or running:
        while ready and len(running) < cores:
            _, number = heapq.heappop(ready)
            main_is_free = max(main_is_free, now) + dispatch
            heapq.heappush(running, (main_is_free + jobs[number].seconds, number))
        now, ended = heapq.heappop(running)
        last = max(last, now)
        for number in followers[ended]:
            waits[number] -= 1
            if not waits[number]:
                heapq.heappush(ready, (-jobs[number].priority, number))
    return last


def critical_path(jobs: list[Job]) -> list[Job]:
    """The longest chain of jobs that wait for each other."""
    length = [0.0] * len(jobs)
    before = [-1] * len(jobs)
    for number in _in_order(jobs):
        for earlier in jobs[number].after:
            if before[number] < 0 or length[earlier] > length[before[number]]:
                before[number] = earlier
        length[number] = jobs[number].seconds + (length[before[number]] if before[number] >= 0 else 0.0)
    number = max(range(len(jobs)), key=length.__getitem__)
    path = []
    while number >= 0:
        path.append(jobs[number])
        number = before[number]
    return path[::-1]


def _in_order(jobs: list[Job]) -> list[int]:
    """The jobs' places, each after all that it waits for."""
    order: list[int] = []
    known: set[int] = set()
    for number in range(len(jobs)):
        stack = [number]
        while stack:
            missing = [earlier for earlier in jobs[stack[-1]].after if earlier not in known]
            if missing:
                stack += missing
                continue
            if (done := stack.pop()) not in known:
                known.add(done)
                order.append(done)
    return order


def main() -> None:
    """The table, the critical paths and the figure."""
    rows, curves = [], {}
    for study in studies():
        jobs = read(study)
        walls = [START + wall(jobs, cores) for cores in CORES]
        curves[study] = walls
        rows.append([study, len(jobs), *(round(seconds) for seconds in walls)])
        path = critical_path(jobs)
        steps = ", ".join(f"{job.rule} {job.name.split('/', 1)[-1]} {job.seconds:.0f}" for job in path)
        print(f"{study}: critical path {sum(job.seconds for job in path):.0f} s: {steps}")
    table("speed-up", ["study", "jobs", *map(str, CORES)], rows, "## Wall seconds against cores")
    draw(curves)


def draw(curves: dict[str, list[float]]) -> None:
    """Draw the speed-up against cores, one line a study."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, ax = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    ax.loglog(CORES, CORES, color="0.7", linewidth=1, label="as many times as cores", base=2)
    for name, walls in curves.items():
        label = f"{name} ({math.ceil(walls[0] / 60)} min on one core)"
        speed = [walls[0] / seconds for seconds in walls]
        ax.loglog(CORES, speed, label=label, base=2, marker=".", linewidth=1.3)
    ax.set_xticks(CORES, [str(cores) for cores in CORES])
    ax.set_yticks(CORES[:8], [str(cores) for cores in CORES[:8]])
    ax.set_xlabel("cores")
    ax.set_ylabel("times as fast as one core")
    ax.set_ylim(0.9, 160)
    ax.grid(alpha=0.3)
    ax.legend(frameon=False, fontsize="small")
    figure.savefig(FIGURE, dpi=110)
    print(f"\n{FIGURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
