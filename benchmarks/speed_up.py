"""How long each study takes on 1 to 512 cores: its measured jobs, scheduled as Snakemake does.

    python benchmarks/speed_up.py

prints a table and draws docs/cluster-speed-up.png from results/jobs-<study>.csv (see jobs.py).

List scheduling: a job is ready when the jobs that it waits for have ended; whenever cores are free, the
ready job of the highest priority starts, after the main process has spent its hundredth of a second on
it. What the model leaves out: that cores share memory and caches.
"""

import heapq
import math
from dataclasses import replace

from jobs import LONG, ROOT, Job, read, studies
from measuring import table

CORES = [2**power for power in range(10)]
FIGURE = ROOT / "docs" / "cluster-speed-up.png"

DISPATCH = 0.012  # seconds of the main process for each job, one after another
START = 5.0  # seconds until Snakemake has read the workflow and knows its jobs
PROCESS = 1.2  # seconds that a process takes to start, import and load machine code
PARTS = 4  # processes that share a long cell (workflow/rules/common.smk: cell_threads)


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


def split(jobs: list[Job], parts: int = PARTS) -> list[Job]:
    """The jobs, with `parts` for each cell of a method with long ones, each with its share of the seeds."""
    long = {job.kind for job in jobs if job.rule.startswith("sample_") and job.seconds >= LONG}
    places: list[list[int]] = []
    result: list[Job] = []
    for job in jobs:
        share = parts if job.kind in long else 1
        seconds = PROCESS + max(0.0, job.seconds - PROCESS) / share if share > 1 else job.seconds
        places.append(list(range(len(result), len(result) + share)))
        result += [replace(job, seconds=seconds) for _ in range(share)]
    for job in result:
        job.after = [place for earlier in job.after for place in places[earlier]]
    return result


def main() -> None:
    """The table, the critical paths and the figure."""
    rows, curves = [], {}
    for study in studies():
        jobs = read(study)
        for name, those in ((study, jobs), (f"{study}, long cells split", split(jobs))):
            walls = [START + wall(those, cores) for cores in CORES]
            curves[name] = walls
            rows.append([name, len(those), *(round(seconds) for seconds in walls)])
            path = critical_path(those)
            steps = ", ".join(f"{job.rule} {job.name.split('/', 1)[-1]} {job.seconds:.0f}" for job in path)
            print(f"{name}: critical path {sum(job.seconds for job in path):.0f} s: {steps}")
    table("speed-up", ["study", "jobs", *map(str, CORES)], rows, "## Wall seconds against cores")
    draw(curves)


def draw(curves: dict[str, list[float]]) -> None:
    """Speed-up against cores, one line a study, dashed where long cells are split."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, ax = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    ax.loglog(CORES, CORES, color="0.7", linewidth=1, label="as many times as cores", base=2)
    names = [name for name in curves if "," not in name]
    for name, walls in curves.items():
        study, _, is_split = name.partition(",")
        one = curves[study][0]
        color = f"C{names.index(study)}"
        label = f"{name} ({math.ceil(one / 60)} min on one core)" if not is_split else None
        style = {"color": color, "linestyle": "--" if is_split else "-", "marker": ".", "linewidth": 1.3}
        ax.loglog(CORES, [one / seconds for seconds in walls], label=label, base=2, **style)
    ax.set_xticks(CORES, [str(cores) for cores in CORES])
    ax.set_yticks(CORES[:8], [str(cores) for cores in CORES[:8]])
    ax.set_xlabel("cores")
    ax.set_ylabel("times as fast as one core")
    ax.set_ylim(0.9, 160)
    ax.grid(alpha=0.3)
    ax.legend(
        frameon=False, fontsize="small", title="dashed: long cells on four cores", title_fontsize="small"
    )
    figure.savefig(FIGURE, dpi=110)
    print(f"\n{FIGURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
