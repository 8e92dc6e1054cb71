// Drives the host port of a machine: writes words, runs, and reads words, one a clock edge.

#ifndef TORUSFABRIC_DRIVE_H
#define TORUSFABRIC_DRIVE_H

#include <cstdint>
#include <cstring>
#include <ctime>

namespace {

enum Input { START, HOST_WE, HOST_NODE, HOST_ADDR, HOST_WDATA };
enum Outcome { DONE, BUSY_TOO_LONG, NOT_BUSY, STOPPED, NO_FILE };

enum Step { WRITE, RUN, READ };

// One step of a collective: words written or read through the host port, or the run itself.
struct Task {
    uint64_t step, chunks;
    uint64_t latency;  // clock edges of a read, or those after a write in which no run begins
    uint64_t patience;
    uint64_t count;    // words, each with a node and an address
    const uint32_t *nodes, *addresses;
    uint32_t *words;
    uint64_t cycles, edges, clocks, nanoseconds;
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
int write(Machine &machine, Task &task) {
    number(machine, HOST_WE, 1);
    for (uint64_t k = 0; k < task.count; k++) {
        number(machine, HOST_NODE, task.nodes[k]);
        number(machine, HOST_ADDR, task.addresses[k]);
        machine.set(HOST_WDATA, task.words + k * task.chunks, task.chunks);
        machine.tick();
        task.done = k + 1;
        if (int const outcome = outcome_so_far(machine, task))
            return outcome;
    }
    number(machine, HOST_WE, 0);
    for (uint64_t k = 0; k < task.latency; k++)
        machine.tick();
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
int read(Machine &machine, Task &task) {
    for (uint64_t k = 0; k < task.count + task.latency; k++) {
        if (k >= task.latency) {
            uint32_t *const word = task.words + (k - task.latency) * task.chunks;
            std::memcpy(word, machine.host_rdata(), task.chunks * sizeof(uint32_t));
            task.done = k - task.latency + 1;
        }
        uint64_t const asked = k < task.count ? k : task.count - 1;
        number(machine, HOST_NODE, task.nodes[asked]);
        number(machine, HOST_ADDR, task.addresses[asked]);
        machine.tick();
        if (int const outcome = outcome_so_far(machine, task))
            return outcome;
    }
    return DONE;
}

// A machine has set(input, chunks, count), busy(), done(), cycles(), host_rdata(), and tick() for a
// clock edge. Of its waves, flush_waves() writes all up to now, and wave_error() is the number of the
// first error, or 0.
template <class Machine>
int drive(Machine &machine, Task &task) {
    uint64_t const began = now();
    int outcome = DONE;
    switch (task.step) {
    case WRITE: outcome = write(machine, task); break;
    case RUN: outcome = collect(machine, task); break;
    case READ: outcome = read(machine, task); break;
    }
    task.nanoseconds = now() - began;
    machine.flush_waves();
    task.file_error = machine.wave_error();
    return task.file_error && outcome != STOPPED ? NO_FILE : outcome;
}

}  // namespace

#endif
