"""Helpers of many tests: fabrics by name, messages, command lines and planted faults."""

import argparse
import json
from dataclasses import replace

import numpy as np
import pytest
from amaranth.sim import Simulator

from torusfabric import Fabric, planning, verilog
from torusfabric import collective as collectives
from torusfabric.analysis.cost import schedule_cost
from torusfabric.cli import main
from torusfabric.program import Action
from torusfabric.rtl.arrays import Slice
from torusfabric.rtl.assembly import Assembly
from torusfabric.rtl.netlist import NetlistBuilder, Part
from torusfabric.simulation.engines import AmaranthEngine, Job

#: The collectives that a name describes; a pattern needs the list of its messages, too.
NAMED_COLLECTIVES = [kind for kind in collectives.COLLECTIVES if kind != "pattern"]

__all__ = [
    "NAMED_COLLECTIVES",
    "as_executed",
    "check_jobs",
    "check_refused",
    "check_run",
    "command_actions",
    "cycles_of_rounds",
    "delay_end",
    "expected_words",
    "fabric_of",
    "few",
    "leave_out_texts",
    "forgetful",
    "misrouted",
    "netlist_of_roms",
    "plan",
    "program_of",
    "random_messages",
    "run_command",
    "run_json",
    "simulated",
    "starts_seen",
    "with_loop",
    "with_operator",
]


def plan(topology, collective, algorithm=None, *, root=None, **options):
    """Return a schedule by names, by the best algorithm that fits unless one is named.

    The schedule is unchecked, and has the form that the algorithm gives it, not its smallest form.
    """
    selection = planning.make_selection(
        topology, collective, algorithm=algorithm, root=root, **options
    )
    return selection.resolve_algorithm()(
        selection.topology, selection.collective, selection.options
    )


def program_of(topology, collective, algorithm=None, *, flits=None, operator=None, root=None,
               **options):  # fmt: skip
    """Return a program by names; the root is a node, or ``"any"``."""
    any_root = root == "any"
    schedule = plan(topology, collective, algorithm, root=None if any_root else root, **options)
    return planning.compile(
        schedule,
        flits=flits,
        operators=[operator] if operator else [],
        root="any" if any_root else None,
    )


def fabric_of(topology, collective, algorithm=None, *, width=8, top="host", fault=None, **options):
    """Return a fabric by names; options are options of `program_of`.

    A fault is a function from a program to a program with a fault, such as `misrouted`.
    """
    program = program_of(topology, collective, algorithm, **options)
    return Fabric(fault(program) if fault else program, width=width, top=top)


def few(count, cases, *, tuples=False):
    """Return cases of a test, of which all but the first `count` are marked as long.

    A tuple is the values of several parameters or, with `tuples`, the value of one parameter.
    """
    long = pytest.mark.long
    rest = [
        case
        if hasattr(case, "marks")
        else pytest.param(
            *(case if isinstance(case, tuple) and not tuples else (case,)), marks=long
        )
        for case in cases[count:]
    ]
    return [*cases[:count], *rest]


def command_actions(parser):
    """Yield the command and the action of every argument but --help.

    The function reads private members, because argparse has no other way to them.
    """
    (commands,) = (action for action in parser._actions if action.nargs == argparse.PARSER)  # noqa: SLF001
    for name, command in commands.choices.items():
        for action in command._actions:  # noqa: SLF001
            if action.dest != "help":
                yield name, action


def run_command(capsys, *words):
    """Return exit status, standard output and standard error of a command line."""
    status = main([*map(str, words)])
    return status, *capsys.readouterr()


def check_refused(capsys, *words, status=1):
    """Check that a command is refused in one line on standard error, and return that line."""
    capsys.readouterr()  # discard the output of earlier commands
    found, out, err = run_command(capsys, *words)
    assert (found, out, err.count("\n")) == (status, "", 1), (found, out, err)
    assert err.startswith("torusfabric: ")
    return err


def run_json(capsys, *words):
    """Return the one JSON object that a command prints."""
    status, out, err = run_command(capsys, *words, "--json", "--quiet")
    assert (status, err) == (0, "")
    return json.loads(out)


def leave_out_texts(monkeypatch):
    """Emit modules without their Verilog, for tests that read none of it."""
    empty = verilog.ModuleText("", verilog.Structure({}), {})
    monkeypatch.setattr(
        "torusfabric.verilog.text.module_texts",
        lambda netlist, prefix, rule: {prefix + n: empty for n in [*netlist.modules, "rom"]},
    )


def random_messages(fabric, seed):
    """Return random words for every node's send memory."""
    return collectives.random_messages(
        fabric.program.layout, fabric.flits, width=fabric.width, seed=seed
    )


def expected_words(program, messages, root=None, operation=None, width=64):
    """Return the expected words of every node, and True for nodes that receive any."""
    return collectives.expected_words(
        program.layout,
        messages,
        operator=program.modes[0].operator_of(operation),
        width=width,
        root=root,
    )


def as_executed(fabric, seed=1, root=None):
    """Return random messages, and the words that the host reads by execution of the program.

    Returns
    -------
    messages : list of (list of int)
        Words of each node.
    words : ndarray of Python int, shape (nodes, receive words)
        Words that the host reads.
    """
    messages = random_messages(fabric, seed)
    return messages.tolist(), fabric.program.execute(messages, root=root, width=fabric.width)


def check_run(fabric, engine=AmaranthEngine, *, root=None, **settings):
    """Run a fabric; compare its words with the executed program and with the expected words."""
    messages, executed = as_executed(fabric, root=root)
    dtype = np.uint64 if fabric.width <= 64 else object
    sent = np.array(messages, dtype)
    words, receives = expected_words(fabric.program, sent, root=root, width=fabric.width)
    assert (executed[receives] == words[receives]).all()
    run = engine(fabric, **settings).run(messages, job=Job(root=root) if root is not None else None)
    assert (np.array(run.words, dtype)[receives] == executed[receives]).all()
    assert run.cycles == run.edges == fabric.predicted_cycles


def check_jobs(fabric, jobs, engine=AmaranthEngine, **settings):
    """Run jobs one after another, without a reset; compare with the executed program."""
    program, width = fabric.program, fabric.width
    parts = [program.part(program.form_of(job.mode, job.length)) for job in jobs]
    batches = [
        collectives.random_messages(part.layout, program.length_of(job.length), width=width, seed=k)
        for k, (part, job) in enumerate(zip(parts, jobs, strict=True))
    ]
    runs = engine(fabric, **settings).run_many(batches, jobs=jobs)
    for job, part, messages, run in zip(jobs, parts, batches, runs, strict=True):
        executed = program.execute(messages, **job._asdict(), width=width)
        words, receives = expected_words(
            part, messages, root=job.root, operation=job.operation, width=width
        )
        assert (executed[receives] == words[receives]).all()
        assert (run.words[receives] == executed[receives]).all(), job
        assert run.cycles == run.edges == program.cycles(job.length, mode=job.mode), job


def starts_seen(fabric, steps):
    """Return `error`, `busy` and `done` after each start, given the inputs of the start.

    A number among the steps is a number of cycles between two starts.
    """
    design, seen = Assembly(fabric.netlist), []

    async def testbench(ctx):
        for step in steps:
            if isinstance(step, int):
                await ctx.tick().repeat(step)
                continue
            for name, value in step.items():
                ctx.set(getattr(design, name), value)
            ctx.set(design.start, 1)
            await ctx.tick()
            ctx.set(design.start, 0)
            seen.append(tuple(ctx.get(each) for each in (design.error, design.busy, design.done)))

    simulated(design, testbench)
    return seen


def cycles_of_rounds(schedule, flits):
    """Return the cycles of a circuit schedule: one a round, its hops, its flits, and three more."""
    cost = schedule_cost(schedule)
    return cost.rounds + cost.delta + cost.tau * flits + 3


def with_loop(program, **changes):
    """Return a program with changes in its loop, for planted faults."""
    mode = replace(program.form, loop=replace(program.loop, **changes))
    return replace(program, forms=(mode,))


def with_operator(program, operator):
    """Return a program that combines words by another operator."""
    return replace(program, forms=(replace(program.form, operators=(operator,)),))


def with_fields(program, action, change):
    """Return a program in which `change` replaces the fields of an action."""
    fields = (f if f.point.action is not action else change(f) for f in program.loop.fields)
    return with_loop(program, fields=tuple(fields))


def misrouted(program):
    """Plant a fault in a program: a router forwards a word of the wrong port."""
    select = program.loop.selected_sources
    one, other = select[:, 0, 0], select[:, 0, 1]
    row = np.argmax((one >= 0) & (other >= 0) & (one != other))
    assert one[row] != other[row]

    def change(field):
        if field.point.number:
            return field
        values = field.values.copy()
        values[row, 0] = other[row]
        return replace(field, values=values)

    return with_fields(program, Action.SELECT, change)


def forgetful(program):
    """Plant a fault in a table of sums: a sum loses one operand."""
    identity = program.loop.sources.identity
    last = [
        field.point.number
        for field in program.loop.fields_of_action(Action.OPERAND)
        if ((field.values >= 0) & (field.values < identity)).any()
    ][-1]

    def change(field):
        if field.point.number != last:
            return field
        values = field.values.copy()
        row = np.flatnonzero((values[:, 0] >= 0) & (values[:, 0] < identity))[-1]
        values[row] = identity
        return replace(field, values=values)

    return with_fields(program, Action.OPERAND, change)


def delay_end(fabric, *, flits=20):
    """Plant a fault in a fabric of a loop by flits: its sequencer continues for `flits` flits."""
    later = replace(with_loop(fabric.program, flits=flits), flits=flits)
    late = Fabric(later, width=fabric.width)
    fabric.netlist.modules["sequencer"] = late.netlist.modules["sequencer"]


def simulated(design, *testbenches):
    """Run testbenches on a design, with a clock if it has registers; all have to end."""
    simulator = Simulator(design)
    simulator.add_clock(1e-6, if_exists=True)
    for testbench in testbenches:
        simulator.add_testbench(testbench)
    simulator.run()


def netlist_of_roms(*roms):
    """Return a netlist of ROMs, (rows, width) each, that read the same address."""
    netlist, first = NetlistBuilder(), np.array([0])
    netlist.add_input("address", 10)
    for number, (rows, width) in enumerate(roms):
        netlist.add_roms("rom_{}", np.array([number]), contents=[tuple(rows)], which=first,
                         width=width, address=[Slice("address", None, 0, 10)],
                         output="data_{}")  # fmt: skip
        netlist.wire_output(f"q_{number}", (Part(f"data_{number}", 0, width),))
    return netlist.make_netlist()
