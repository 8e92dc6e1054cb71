"""What a simulation found, for people."""

from typing import Any

from ..analysis.facts import bound_in_words, forms_in_words, in_words, steps_in_words

__all__ = ["host_shown", "streams_shown"]

#: What is shown of a simulation of one collective, of several, and of streams, in this order.
NAMES = ("topology", "collective", "operator", "algorithm", "forms", "why", "engine", "nodes",
         "width", "flits", "router_classes", "origins", "latency", "rounds", "bound", "limit",
         "delta", "tau", "cycles", "predicted_cycles", "cost_formula", "constant", "roots",
         "words_checked", "words_wrong", "port_words", "direct_words")  # fmt: skip
OF_SEVERAL = ("topology", "nodes", "width", "flits", "origins", "cycles", "predicted_cycles",
              "words_checked", "words_wrong", "port_words", "direct_words")  # fmt: skip
OF_STREAMS = ("topology", "collective", "operator", "algorithm", "nodes", "width", "flits")
COUNTS_OF_STREAMS = ("cycles", "predicted_cycles", "words_checked", "words_wrong", "stall")


def host_shown(result: dict[str, Any]) -> dict[str, Any]:
    """What a simulation through a host port found; ``constant`` and ``origins`` are in words."""
    shown = _of_several(result) if "modes" in result else _of_one(result)
    shown["time"] = f"{_time(result)}, {result['node_cycles_per_second']:,} node cycles a second"
    return shown | {name: result[name] for name in ("wave", "trace") if result[name]}


def _named(result: dict[str, Any], *names: str) -> dict[str, Any]:
    """Some of what was found."""
    return {name.replace("_", " "): result[name] for name in names}


def _time(result: dict[str, Any]) -> str:
    """What a simulation took."""
    built = f"{result['build_seconds']:.1f} s to build, " if result["build_seconds"] else ""
    return f"{built}{result['seconds']:.1f} s, {result['clocks']} clocks"


def _lengths(jobs: list[dict[str, Any]]) -> str:
    """How many runs, and of which lengths."""
    lengths = [job["length"] for job in jobs]
    between = f", of lengths from {min(lengths)} to {max(lengths)} flits" if lengths else ""
    return f"{len(lengths)}{between}"


def _of_one(result: dict[str, Any]) -> dict[str, Any]:
    """What a simulation of one collective found."""
    said = in_words(result) | {"constant": result["constant"][0]}
    steps = result["unit"].partition(" of ")[0]
    names = (steps if name == "rounds" else name for name in NAMES)
    shown = _named(said, *(name for name in names if name in said))
    if shown["operator"] is None:
        del shown["operator"], shown["latency"]
    if result["jobs"]:
        shown["jobs"] = _lengths(result["jobs"])
    if roots := shown.pop("roots"):
        shown["roots"] = " ".join(map(str, roots))
    shown["lower bound"] = shown.pop("bound")
    shown["engine"] += f" ({result['engine_reason']})"
    shown["throughput"] = (
        f"{result['throughput']:g} words a cycle a node, at most {result['throughput_bound']:g}"
    )
    return shown


def _of_several(result: dict[str, Any]) -> dict[str, Any]:
    """What a simulation of several collectives found."""
    shown = _named(result, *OF_SEVERAL)
    for number, mode in enumerate(result["modes"]):
        jobs = [job for job in result["jobs"] if job["mode"] == number]
        wrong = sum(job["words_wrong"] for job in jobs)
        checked = sum(job["words_checked"] for job in jobs)
        forms = f", {forms_in_words(mode['forms'])}" if "forms" in mode else ""
        shown[f"mode {number}"] = (
            f"{mode['collective']} by {mode['algorithm']}, {steps_in_words(mode)} "
            f"({bound_in_words(mode)}){forms}: {len(jobs)} runs, {wrong} of {checked} words wrong"
        )
        shown[f"mode {number} formula"] = result["mode_costs"][number]["cost_formula"]
        shown[f"mode {number} constant"] = result["constant"][number]
    shown["engine"] = f"{result['engine']} ({result['engine_reason']})"
    return shown


def streams_shown(result: dict[str, Any]) -> dict[str, Any]:
    """What a simulation of streams found."""
    shown = _named(result, *(name for name in OF_STREAMS if result[name] is not None))
    if "modes" not in result:
        words = in_words(result)
        steps = result["unit"].partition(" of ")[0]
        shown |= {steps: words[steps], "lower bound": words["bound"], "limit": words["limit"]}
    shown["runs"] = _lengths(result["jobs"])
    if result["dropped"]:
        errors = (f"{count} for error {error}" for error, count in result["dropped"].items())
        shown["dropped"] = ", ".join(errors)
    shown |= _named(result, *COUNTS_OF_STREAMS)
    shown |= _rate(result["rate"]) if result["rate"] else {}
    shown["engine"] = f"{result['engine']} ({result['engine_reason']})"
    shown["time"] = _time(result)
    return shown | ({"wave": result["wave"]} if result["wave"] else {})


def _rate(rate: dict[str, Any]) -> dict[str, str]:
    """How fast runs followed one another, for people."""
    return {
        "sustained rate": f"{rate['words_per_cycle']:.3g} words ({rate['bytes_per_cycle']:.3g} "
        f"bytes) a cycle, received by all nodes; {100 * rate['share']:.0f} % of "
        f"{rate['words_per_cycle_limit']:.3g}, which ports and links allow",
        "limited by": f"{rate['limited_by']}: of {rate['cycles']} cycles for {rate['runs']} runs, "
        f"loading needs {rate['load_cycles']:.0f}, running {rate['run_cycles']:.0f}, unloading "
        f"{rate['unload_cycles']:.0f}",
    }
