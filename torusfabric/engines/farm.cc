// Runs a farm: clock edges, the host port, and waves.

#include "farm.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

using farm::Class;
using farm::Word;

namespace {

// Instances of one class on one level: all they read that is not registered is on lower levels.
struct Group {
    const Class *type;
    void *instances;
    const Word *rows;
    const Word *shared;
    uint64_t count;
    uint64_t first;   // number of its first instance among all
    uint64_t common;  // whether they are of no node
};

struct Lists {
    const uint32_t *start;
    const uint32_t *items;
};

// An output that common instances read: those numbered in items[first] .. items[last - 1].
struct Watch {
    const uint32_t *value;
    uint32_t *old;
    uint64_t chunks;
    uint64_t first, last;
};

// The watched outputs of each instance: numbers start[k] .. start[k + 1] - 1.
struct Watches {
    const uint32_t *start;
    const Watch *watches;
    const uint32_t *items;
};

struct Net {
    const char *scope;
    const char *name;
    const uint32_t *value;
    uint64_t width;
};

struct Design {
    const Group *groups;
    uint64_t group_count;
    uint64_t nodes;
    Lists of_node;             // instances of each node, in order of their groups
    Watches at_once, next_time;  // combinational outputs, and registers
    Lists of_input;            // common instances that read each input
    uint32_t **inputs;         // start, host_we, host_node, host_addr, host_wdata
    const uint32_t *busy, *done, *cycles, *host_rdata;
    uint64_t settle;           // whether outputs of the whole are combinational
    uint64_t gated;
    const Net *nets;           // to be written as waves
    uint64_t net_count;
    const char *wave;
};

enum Input { START, HOST_WE, HOST_NODE, HOST_ADDR, HOST_WDATA };
enum Outcome { DONE, BUSY_TOO_LONG, NOT_BUSY, STOPPED, NO_FILE };

struct Task {
    uint64_t chunks, send_base, send_words, recv_base, recv_words, latency, write_delay,
        patience;
    const uint32_t *send;
    uint32_t *recv;
    uint64_t cycles, edges, clocks, load_ns, run_ns, read_ns;
    volatile uint64_t done;
    volatile uint64_t stop;
};

class Wave {
public:
    Wave(const Design &design) : design_(design) {
        if (!design.wave || !(file_ = std::fopen(design.wave, "w")))
            return;
        std::fprintf(file_, "$timescale 1ns $end\n$scope module fabric $end\n$var wire 1 ! clk $end\n");
        std::string scope;
        for (uint64_t k = 0; k < design.net_count; k++) {
            const Net &net = design.nets[k];
            if (scope != net.scope) {
                if (!scope.empty())
                    std::fprintf(file_, "$upscope $end\n");
                scope = net.scope;
                if (!scope.empty())
                    std::fprintf(file_, "$scope module %s $end\n", net.scope);
            }
            if (net.width > 1)
                std::fprintf(file_, "$var wire %u %s %s [%u:0] $end\n", (unsigned)net.width,
                             code(k).c_str(), net.name, (unsigned)net.width - 1);
            else
                std::fprintf(file_, "$var wire 1 %s %s $end\n", code(k).c_str(), net.name);
            old_.emplace_back((net.width + 31) / 32, 0xfffffffeu);
        }
        if (!scope.empty())
            std::fprintf(file_, "$upscope $end\n");
        std::fprintf(file_, "$upscope $end\n$enddefinitions $end\n");
    }

    ~Wave() {
        if (file_)
            std::fclose(file_);
    }

    bool open() const { return file_; }

    // What holds between a clock edge and the next: 10 ns.
    void write(uint64_t clocks) {
        std::fprintf(file_, "#%llu\n1!\n", (unsigned long long)clocks * 10);
        for (uint64_t k = 0; k < design_.net_count; k++) {
            const Net &net = design_.nets[k];
            size_t const size = old_[k].size() * sizeof(uint32_t);
            if (written_ && !std::memcmp(old_[k].data(), net.value, size))
                continue;
            std::memcpy(old_[k].data(), net.value, size);
            if (net.width > 1)
                std::fputc('b', file_);
            for (uint64_t bit = net.width; bit--;)
                std::fputc('0' + (net.value[bit / 32] >> bit % 32 & 1), file_);
            std::fprintf(file_, net.width > 1 ? " %s\n" : "%s\n", code(k).c_str());
        }
        written_ = true;
        std::fprintf(file_, "#%llu\n0!\n", (unsigned long long)clocks * 10 + 5);
    }

private:
    static std::string code(uint64_t number) {
        std::string text;
        for (number++; number; number /= 94)
            text += (char)('!' + number % 94);
        return text;
    }

    const Design &design_;
    std::FILE *file_ = nullptr;
    std::vector<std::vector<uint32_t>> old_;
    bool written_ = false;
};

class Farm {
public:
    Farm(const Design &design) : design_(design), wave_(design) {
        for (uint64_t g = 0; g < design.group_count; g++) {
            const Group &group = design.groups[g];
            total_ += group.count;
            for (uint64_t k = 0; k < group.count; k++)
                group_of_.push_back((uint32_t)g);
        }
        dirty_.assign(total_, 1);
    }

    bool ready() const { return !design_.wave || wave_.open(); }

    int run(Task &task) {
        auto const began = now();
        clocks_ = 0;
        int outcome = load(task);
        auto const loaded = now();
        if (outcome == DONE)
            outcome = collect(task);
        auto const ended = now();
        if (outcome == DONE)
            outcome = read(task);
        task.clocks = clocks_;
        task.load_ns = loaded - began;
        task.run_ns = ended - loaded;
        task.read_ns = now() - ended;
        return outcome;
    }

private:
    static uint64_t now() {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(
            std::chrono::steady_clock::now().time_since_epoch()).count();
    }

    void set(Input input, const uint32_t *value, uint64_t chunks) {
        uint32_t *const place = design_.inputs[input];
        if (!std::memcmp(place, value, chunks * sizeof(uint32_t)))
            return;
        std::memcpy(place, value, chunks * sizeof(uint32_t));
        mark(design_.of_input, input);
    }

    void number(Input input, uint64_t value) {
        uint32_t const word = (uint32_t)value;
        set(input, &word, 1);
    }

    void mark(const Lists &lists, uint64_t number) {
        for (uint32_t k = lists.start[number]; k < lists.start[number + 1]; k++)
            dirty_[lists.items[k]] = 1;
    }

    // Mark those that read outputs of instances first .. last - 1, where these have changed.
    void look(const Watches &watches, uint64_t first, uint64_t last) {
        for (uint32_t k = watches.start[first]; k < watches.start[last]; k++) {
            const Watch &watch = watches.watches[k];
            bool changed = false;
            for (uint64_t chunk = 0; chunk < watch.chunks; chunk++) {
                changed |= watch.old[chunk] != watch.value[chunk];
                watch.old[chunk] = watch.value[chunk];
            }
            if (changed)
                for (uint64_t item = watch.first; item < watch.last; item++)
                    dirty_[watches.items[item]] = 1;
        }
    }

    void eval(const Group &group, uint64_t first, uint64_t last, bool edge) {
        group.type->eval(group.instances, group.rows, group.shared, first, last, edge);
    }

    // A common instance whose inputs and state are as they were at the last edge stays as it is.
    void eval_common(const Group &group) {
        for (uint64_t k = 0; k < group.count; k++) {
            uint64_t const number = group.first + k;
            if (!dirty_[number] && design_.gated)
                continue;
            dirty_[number] = 0;
            eval(group, k, k + 1, true);
            look(design_.at_once, number, number + 1);
            evaluated_.push_back(number);
        }
    }

    void commit(uint64_t number) {
        const Group &group = design_.groups[group_of_[number]];
        uint64_t const k = number - group.first;
        if (group.type->commit(group.instances, k, k + 1)) {
            dirty_[number] = group.common;
            look(design_.next_time, number, number + 1);
        }
    }

    // A clock edge for the common part and all nodes.
    void tick() {
        evaluated_.clear();
        for (uint64_t g = 0; g < design_.group_count; g++) {
            const Group &group = design_.groups[g];
            if (group.common) {
                eval_common(group);
                continue;
            }
            eval(group, 0, group.count, true);
            look(design_.at_once, group.first, group.first + group.count);
        }
        for (uint64_t g = 0; g < design_.group_count; g++) {
            const Group &group = design_.groups[g];
            if (group.common)
                continue;
            group.type->commit(group.instances, 0, group.count);
            look(design_.next_time, group.first, group.first + group.count);
        }
        for (uint64_t number : evaluated_)
            commit(number);
        after();
    }

    // A clock edge for the common part and nodes first to last.
    void tick(uint64_t first, uint64_t last) {
        if (!design_.gated)
            return tick();
        evaluated_.clear();
        const Lists &places = design_.of_node;
        wanted_.assign(places.items + places.start[first], places.items + places.start[last + 1]);
        if (last > first)
            std::sort(wanted_.begin(), wanted_.end());
        size_t next = 0;
        for (uint64_t g = 0; g < design_.group_count; g++) {
            const Group &group = design_.groups[g];
            if (group.common)
                eval_common(group);
            for (; next < wanted_.size() && group_of_[wanted_[next]] == g; next++) {
                uint64_t const k = wanted_[next] - group.first;
                eval(group, k, k + 1, true);
                look(design_.at_once, wanted_[next], wanted_[next] + 1);
                evaluated_.push_back(wanted_[next]);
            }
        }
        for (uint64_t number : evaluated_)
            commit(number);
        after();
    }

    void after() {
        clocks_++;
        if (!wave_.open() && !design_.settle)
            return;
        for (uint64_t g = 0; g < design_.group_count; g++)
            eval(design_.groups[g], 0, design_.groups[g].count, false);
        if (wave_.open())
            wave_.write(all_clocks_++);
    }

    int load(Task &task) {
        // The oldest write under way, and the node that it is for.
        uint64_t written = 0, oldest = 0, aged = 0;
        task.done = 0;
        number(HOST_WE, 1);
        const uint32_t *word = task.send;
        for (uint64_t node = 0; node < design_.nodes; node++) {
            number(HOST_NODE, node);
            for (uint64_t k = 0; k < task.send_words; k++, word += task.chunks) {
                number(HOST_ADDR, task.send_base + k);
                set(HOST_WDATA, word, task.chunks);
                if (written++ > task.write_delay + 1 && ++aged == task.send_words) {
                    aged = 0;
                    oldest++;
                }
                tick(oldest, node);
            }
            task.done = task.done + task.send_words;
            if (task.stop)
                return STOPPED;
        }
        number(HOST_WE, 0);
        return DONE;
    }

    int collect(Task &task) {
        number(START, 1);
        tick();
        number(START, 0);
        for (task.edges = 0; !*design_.done; task.edges++) {
            if (task.stop)
                return STOPPED;
            if (!*design_.busy)
                return NOT_BUSY;
            if (task.edges == task.patience)
                return BUSY_TOO_LONG;
            tick();
        }
        task.cycles = *design_.cycles;
        tick();
        return DONE;
    }

    int read(Task &task) {
        uint64_t const total = design_.nodes * task.recv_words;
        uint64_t node = 0, place = 0, oldest = 0, aged = 0;
        for (uint64_t k = 0; k < total + task.latency; k++) {
            if (k >= task.latency) {
                std::memcpy(task.recv, design_.host_rdata, task.chunks * sizeof(uint32_t));
                task.recv += task.chunks;
            }
            if (k > task.latency && ++aged == task.recv_words) {
                aged = 0;
                oldest++;
            }
            if (place == 0) {
                number(HOST_NODE, node);
                if (task.stop)
                    return STOPPED;
            }
            number(HOST_ADDR, task.recv_base + place);
            tick(oldest, node);
            if (k + 1 < total && ++place == task.recv_words) {
                place = 0;
                node++;
                task.done = task.done + task.recv_words;
            }
        }
        return DONE;
    }

    const Design &design_;
    Wave wave_;
    uint64_t total_ = 0, clocks_ = 0, all_clocks_ = 0;
    std::vector<uint8_t> dirty_;
    std::vector<uint32_t> group_of_, wanted_;
    std::vector<uint64_t> evaluated_;
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void *farm_open(const Design *design) {
    Farm *const farm = new Farm(*design);
    if (farm->ready())
        return farm;
    delete farm;
    return nullptr;
}

EXPORT int farm_run(void *farm, Task *task) { return static_cast<Farm *>(farm)->run(*task); }

EXPORT void farm_close(void *farm) { delete static_cast<Farm *>(farm); }
