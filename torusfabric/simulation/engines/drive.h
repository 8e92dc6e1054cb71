// Drives the host port of a machine: loads all words, runs, and reads all words, one a clock edge.

#ifndef TORUSFABRIC_DRIVE_H
#define TORUSFABRIC_DRIVE_H

#include <cstdint>
#include <cstring>
#include <ctime>

namespace {

enum Input { START, HOST_WE, HOST_NODE, HOST_ADDR, HOST_WDATA };
enum Outcome { DONE, BUSY_TOO_LONG, NOT_BUSY, STOPPED, NO_FILE };

struct Task {
    uint64_t chunks, send_base, send_words, recv_base, recv_words, latency, write_latency,
        patience;
    const uint32_t *send;
    uint32_t *recv;
    uint64_t cycles, edges, clocks, load_ns, run_ns, read_ns;
    volatile uint64_t done;
    volatile uint64_t stop;
    uint64_t file_error;  // the number of the system, where the waves could not be written
};

// Processor time of this thread, which others on the machine do not lengthen.
inline uint64_t now() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * (uint64_t)1000000000 + time.tv_nsec;
}

template <class Machine>
void number(Machine &machine, Input input, uint64_t value) {
    uint32_t const word = (uint32_t)value;
    machine.set(input, &word, 1);
}

// Why to go no further: the caller says so, or the waves cannot be written.
template <class Machine>
int outcome_so_far(Machine &machine, const Task &task) {
    if (task.stop)
        return STOPPED;
    return machine.wave_error() ? NO_FILE : DONE;
}

template <class Machine>
int load(Machine &machine, uint64_t nodes, Task &task) {
    // The oldest write under way, and the node that it is for.
    uint64_t written = 0, oldest = 0, aged = 0;
    task.done = 0;
    number(machine, HOST_WE, 1);
    const uint32_t *word = task.send;
    for (uint64_t node = 0; node < nodes; node++) {
        number(machine, HOST_NODE, node);
        for (uint64_t k = 0; k < task.send_words; k++, word += task.chunks) {
            number(machine, HOST_ADDR, task.send_base + k);
            machine.set(HOST_WDATA, word, task.chunks);
            if (written++ > task.write_latency && ++aged == task.send_words) {
                aged = 0;
                oldest++;
            }
            machine.tick(oldest, node);
        }
        task.done = task.done + task.send_words;
        if (int const outcome = outcome_so_far(machine, task))
            return outcome;
    }
    number(machine, HOST_WE, 0);
    return DONE;
}

template <class Machine>
int collect(Machine &machine, Task &task) {
    number(machine, START, 1);
    machine.tick();
    number(machine, START, 0);
    for (task.edges = 0; !machine.done(); task.edges++) {
        if (int const outcome = outcome_so_far(machine, task))
            return outcome;
        if (!machine.busy())
            return NOT_BUSY;
        if (task.edges == task.patience)
            return BUSY_TOO_LONG;
        machine.tick();
    }
    task.cycles = machine.cycles();
    machine.tick();
    return DONE;
}

template <class Machine>
int read(Machine &machine, uint64_t nodes, Task &task) {
    uint64_t const total = nodes * task.recv_words;
    uint64_t node = 0, place = 0, oldest = 0, aged = 0;
    for (uint64_t k = 0; k < total + task.latency; k++) {
        if (k >= task.latency) {
            std::memcpy(task.recv, machine.host_rdata(), task.chunks * sizeof(uint32_t));
            task.recv += task.chunks;
        }
        if (k > task.latency && ++aged == task.recv_words) {
            aged = 0;
            oldest++;
        }
        if (place == 0) {
            number(machine, HOST_NODE, node);
            if (int const outcome = outcome_so_far(machine, task))
                return outcome;
        }
        number(machine, HOST_ADDR, task.recv_base + place);
        // What nodes showed before is gone by the time that the first word comes.
        if (k < task.latency)
            machine.tick();
        else
            machine.tick(oldest, node);
        if (k + 1 < total && ++place == task.recv_words) {
            place = 0;
            node++;
            task.done = task.done + task.recv_words;
        }
    }
    return DONE;
}

// A machine has set(input, chunks, count), busy(), done(), cycles(), host_rdata(), tick() for a clock
// edge that all nodes need, and tick(first, last) for one that only nodes first to last need. Of its
// waves, flush_waves() writes all up to now, and wave_error() is the number of the first error, or 0.
template <class Machine>
int drive(Machine &machine, uint64_t nodes, Task &task) {
    uint64_t const began = now();
    int outcome = load(machine, nodes, task);
    uint64_t const loaded = now();
    if (outcome == DONE)
        outcome = collect(machine, task);
    uint64_t const ended = now();
    if (outcome == DONE)
        outcome = read(machine, nodes, task);
    task.load_ns = loaded - began;
    task.run_ns = ended - loaded;
    task.read_ns = now() - ended;
    machine.flush_waves();
    task.file_error = machine.wave_error();
    return task.file_error && outcome != STOPPED ? NO_FILE : outcome;
}

}  // namespace

#endif
