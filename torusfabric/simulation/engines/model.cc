// Runs a compiled model: clock edges, the host port or streams, and waves.

#include "drive.h"
#include "model.h"
#include "streams.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

using model::Class;
using model::Word;

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
    uint64_t low, width;  // the bits shown
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

class Wave {
public:
    Wave(const Design &design) : design_(design) {
        if (!design.wave || !(file_ = std::fopen(design.wave, "w")))
            return;
        std::fprintf(file_, "$timescale 1ns $end\n$scope module fabric $end\n");
        std::fprintf(file_, "$var wire 1 ! clk $end\n$var wire 1 %s rst $end\n", RST);
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
            old_.emplace_back((net.low + net.width + 31) / 32);
        }
        if (!scope.empty())
            std::fprintf(file_, "$upscope $end\n");
        std::fprintf(file_, "$upscope $end\n$enddefinitions $end\n");
        look();
    }

    ~Wave() {
        if (file_)
            std::fclose(file_);
    }

    bool open() const { return file_; }

    // The number of the first error, or 0.
    int error() const { return error_; }

    void flush() {
        if (file_ && !error_ && std::fflush(file_))
            error_ = errno;
    }

    // What holds from a clock edge on, or, with the clock low, from half a cycle before one.
    void write(uint64_t clocks, bool high, bool reset) {
        if (error_)
            return;
        std::fprintf(file_, "#%llu\n%d!\n", (unsigned long long)clocks * 10 + (high ? 5 : 0), high);
        if (clocks < 2 && !high)
            std::fprintf(file_, "%d%s\n", reset, RST);
        for (uint64_t k = 0; k < design_.net_count; k++) {
            const Net &net = design_.nets[k];
            size_t const size = old_[k].size() * sizeof(uint32_t);
            if (written_ && !std::memcmp(old_[k].data(), net.value, size))
                continue;
            std::memcpy(old_[k].data(), net.value, size);
            if (net.width > 1)
                std::fputc('b', file_);
            for (uint64_t bit = net.low + net.width; bit-- > net.low;)
                std::fputc('0' + (net.value[bit / 32] >> bit % 32 & 1), file_);
            std::fprintf(file_, net.width > 1 ? " %s\n" : "%s\n", code(k).c_str());
        }
        written_ = true;
        look();
    }

private:
    void look() {
        if (std::ferror(file_))
            error_ = errno ? errno : EIO;
    }

    // The codes `!` and RST are taken.
    static constexpr const char *RST = "\"";

    static std::string code(uint64_t number) {
        std::string text;
        for (number += 2; number; number /= 94)
            text += (char)('!' + number % 94);
        return text;
    }

    const Design &design_;
    std::FILE *file_ = nullptr;
    int error_ = 0;
    std::vector<std::vector<uint32_t>> old_;
    bool written_ = false;
};

class Model {
public:
    Model(const Design &design) : design_(design), wave_(design) {
        for (uint64_t g = 0; g < design.group_count; g++) {
            const Group &group = design.groups[g];
            total_ += group.count;
            for (uint64_t k = 0; k < group.count; k++)
                group_of_.push_back((uint32_t)g);
        }
        dirty_.assign(total_ / 64 + 1, ~(uint64_t)0);
        reset();
    }

    bool ready() const { return !design_.wave || wave_.open(); }

    int run(Task &task) {
        clocks_ = 0;
        int const outcome = drive(*this, task);
        task.clocks = clocks_;
        return outcome;
    }

    int run(StreamTask &task) { return drive_streams(*this, task); }

    int wave_error() const { return wave_.error(); }
    void flush_waves() { wave_.flush(); }

    bool busy() const { return *design_.busy; }
    bool done() const { return *design_.done; }
    uint32_t cycles() const { return *design_.cycles; }
    const uint32_t *host_rdata() const { return design_.host_rdata; }

    void set(Input input, const uint32_t *value, uint64_t chunks) {
        uint32_t *const place = design_.inputs[input];
        if (!std::memcmp(place, value, chunks * sizeof(uint32_t)))
            return;
        std::memcpy(place, value, chunks * sizeof(uint32_t));
        mark(design_.of_input, input);
    }

    // A clock edge for the common part and all nodes.
    void tick() {
        evaluate();
        finish();
    }

    // Work out all that follows from inputs and registers, and what registers become.
    void evaluate() {
        before();
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
    }

    // Let the clock edge take effect.
    void finish() {
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

    // A clock edge for the common part and some nodes.
    void tick(const std::vector<uint64_t> &nodes) {
        if (!design_.gated)
            return tick();
        before();
        evaluated_.clear();
        wanted_.clear();
        const Lists &places = design_.of_node;
        for (uint64_t node : nodes)
            wanted_.insert(wanted_.end(), places.items + places.start[node],
                           places.items + places.start[node + 1]);
        if (nodes.size() > 1)
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

private:
    void mark(const Lists &lists, uint64_t number) {
        for (uint32_t k = lists.start[number]; k < lists.start[number + 1]; k++)
            mark(lists.items[k]);
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
                    mark(watches.items[item]);
        }
    }

    void eval(const Group &group, uint64_t first, uint64_t last, bool edge) {
        group.type->eval(group.instances, group.rows, group.shared, first, last, edge);
    }

    // A common instance whose inputs and state are as they were at the last edge stays as it is.
    void eval_common(const Group &group) {
        uint64_t const last = group.first + group.count;
        for (uint64_t number = group.first; number < last; number++) {
            if (design_.gated) {
                uint64_t const left = dirty_[number / 64] >> number % 64;
                if (!left) {
                    number |= 63;
                    continue;
                }
                number += __builtin_ctzll(left);
                if (number >= last)
                    return;
            }
            dirty_[number / 64] &= ~((uint64_t)1 << number % 64);
            eval(group, number - group.first, number - group.first + 1, true);
            look(design_.at_once, number, number + 1);
            evaluated_.push_back(number);
        }
    }

    void mark(uint64_t number) { dirty_[number / 64] |= (uint64_t)1 << number % 64; }

    void commit(uint64_t number) {
        const Group &group = design_.groups[group_of_[number]];
        uint64_t const k = number - group.first;
        if (group.type->commit(group.instances, k, k + 1)) {
            if (group.common)
                mark(number);
            look(design_.next_time, number, number + 1);
        }
    }

    // An edge with the reset held, as a design that has just been switched on needs it.
    void reset() {
        hold(true);
        before(true);
        for (uint64_t g = 0; g < design_.group_count; g++)
            eval(design_.groups[g], 0, design_.groups[g].count, true);
        for (uint64_t g = 0; g < design_.group_count; g++)
            design_.groups[g].type->commit(design_.groups[g].instances, 0, design_.groups[g].count);
        after();
        hold(false);
    }

    void hold(bool on) {
        for (uint64_t g = 0; g < design_.group_count; g++)
            design_.groups[g].type->reset(design_.groups[g].instances, design_.groups[g].count, on);
    }

    // Inputs change, and what follows from them settles, half a cycle before the edge.
    void before(bool reset = false) {
        if (!wave_.open())
            return;
        settle();
        wave_.write(all_clocks_, false, reset);
    }

    void after() {
        clocks_++;
        if (wave_.open() || design_.settle)
            settle();
        if (wave_.open())
            wave_.write(all_clocks_++, true, false);
    }

    void settle() {
        for (uint64_t g = 0; g < design_.group_count; g++)
            eval(design_.groups[g], 0, design_.groups[g].count, false);
    }

    const Design &design_;
    Wave wave_;
    uint64_t total_ = 0, clocks_ = 0, all_clocks_ = 0;
    std::vector<uint64_t> dirty_;  // a bit for each instance
    std::vector<uint32_t> group_of_, wanted_;
    std::vector<uint64_t> evaluated_;
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void *model_open(const Design *design) {
    Model *const model = new Model(*design);
    if (model->ready())
        return model;
    delete model;
    return nullptr;
}

EXPORT int model_run(void *model, Task *task) { return static_cast<Model *>(model)->run(*task); }

EXPORT int model_run_streams(void *model, StreamTask *task) {
    return static_cast<Model *>(model)->run(*task);
}

// Put words into memories, or take them from there: bits `low[k]` and following at `address[k]`.
EXPORT void model_move(bool put, const uint64_t *address, const uint32_t *low, uint64_t count,
                       uint64_t width, uint32_t *words) {
    uint64_t const chunks = (width + 31) / 32;
    for (uint64_t k = 0; k < count; k++) {
        uint32_t *const place = reinterpret_cast<uint32_t *>(address[k]);
        uint32_t *const word = words + k * chunks;
        for (uint64_t bit = 0; bit < width; bit += 32) {
            uint64_t const bits = width - bit < 32 ? width - bit : 32;
            uint64_t const first = (low[k] + bit) / 32, shift = (low[k] + bit) % 32;
            uint64_t const mask = ((uint64_t)1 << bits) - 1;
            bool const more = shift + bits > 32;
            if (put) {
                uint64_t const value = (word[bit / 32] & mask) << shift;
                place[first] = (place[first] & ~(uint32_t)(mask << shift)) | (uint32_t)value;
                if (more)
                    place[first + 1] = (place[first + 1] & ~(uint32_t)(mask << shift >> 32)) |
                                       (uint32_t)(value >> 32);
            } else {
                uint64_t const both = place[first] | (more ? (uint64_t)place[first + 1] << 32 : 0);
                word[bit / 32] = (uint32_t)(both >> shift & mask);
            }
        }
    }
}

EXPORT void model_close(void *model) { delete static_cast<Model *>(model); }
