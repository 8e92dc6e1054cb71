"""Fabrics by the names of their collectives, and a check of all runs of a fabric."""

from core_bench import check_core
from helpers import check_jobs

import torusfabric as tf
from torusfabric.adapters.host.drive.words import RunWords
from torusfabric.collective import Collective, random_messages, split_names
from torusfabric.schedule import Masked
from torusfabric.simulation.engines import ENGINES

__all__ = ["build_fabric", "check_fabric", "choose_jobs", "draw_words", "mask_schedule"]

#: Options of `tf.compile`, besides `root="any"`.
COMPILED = {"flits", "max_flits", "operators", "barrier"}

#: Options of `tf.Fabric`.
BUILT = {"width", "beat", "top", "bus", "tables", "clocks", "timeout", "prefix", "empty"}

#: Most roots that `choose_jobs` tries for a mode.
ROOTS = 4


def build_fabric(topology, collectives, **options):
    """Build a fabric, by default of 8 bits.

    Parameters
    ----------
    topology : Topology or str
        The topology or its name.
    collectives : str
        Names with their algorithms, between commas: ``"allgather,reduce:max-flow"``.
    **options
        Options of `tf.Fabric` and of `tf.compile`. All others are options of `tf.plan`.
    """
    compiled = {name: value for name, value in options.items() if name in COMPILED}
    if options.get("root") == "any":
        compiled["root"] = options.pop("root")
    built = {name: value for name, value in options.items() if name in BUILT}
    planned = {n: v for n, v in options.items() if n not in COMPILED | BUILT}
    plans = [tf.plan(topology, name, **planned) for name in split_names(collectives)]
    program = tf.compile(plans if len(plans) > 1 else plans[0], **compiled)
    return tf.Fabric(program, **{"width": 8} | built)


def mask_schedule(topology, collective, algorithm="matching"):
    """Plan a collective of any root in which all nodes do the same, for each root."""
    whole = {"scatter": "alltoall", "gather": "allgather", "reduce": "allreduce"}[collective]
    schedule = tf.plan(topology, whole, algorithm=algorithm)
    return Masked.for_root(schedule, Collective(collective, root=0))


def choose_jobs(program):
    """Choose jobs that cover every mode and operator, the lengths of note, and some roots.

    Long and short messages alternate, so that a word left by a long run would be noticed in the
    next one. Modes take turns, from the first to the last and back.
    """
    several, most = len(program.modes) > 1, program.flits
    lengths = [*dict.fromkeys((most, 1, (most + 1) // 2))] if program.any_length else [None]
    rounds = []
    for number, mode in enumerate(program.modes):
        operations = [*range(len(mode.operators))] if len(mode.operators) > 1 else [None]
        size = mode.groups.group_size
        few = min(size, ROOTS)
        roots = [size - 1 - k * size // few for k in range(few)] if mode.any_root else [None]
        for k in range(max(2, len(lengths), len(operations), len(roots))):
            chosen = (each[k % len(each)] for each in (lengths, roots, operations))
            rounds.append((k, (-1) ** k * number, tf.Job(number if several else None, *chosen)))
    return [job for *_, job in sorted(rounds, key=lambda one: one[:2])]


def draw_words(fabric, job, *, seed):
    """Draw random messages of a run.

    Returns
    -------
    words : RunWords
        The messages, all of which go through the host port.
    expected, receives : ndarray
        Expected words, and True where a node receives a word.
    """
    program = fabric.program
    layout = program.part(program.form_of(job.mode, job.length)).layout
    length = program.length_of(job.length)
    messages = random_messages(layout, length, width=fabric.width, seed=seed)
    return RunWords(fabric, messages, job, through_port=True), *fabric.delivered(
        messages, **job.inputs
    )


def check_fabric(fabric, engine="amaranth"):
    """Run the jobs of a fabric through its ports; compare all words, and the cycles of each run."""
    if fabric.top == "core":
        check_core(fabric)
    elif fabric.top == "stream":
        report = tf.simulate(fabric, jobs=choose_jobs(fabric.program), engine=engine, stall=0.3)
        assert report.passed, report.first_wrong
        assert report.words_checked
    else:
        check_jobs(fabric, choose_jobs(fabric.program), ENGINES[engine])
