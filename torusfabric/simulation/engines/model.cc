// Runs a compiled model, clock edge by clock edge.
//
// A clock edge runs only the loops with changed inputs (dirty loops), so idle modules cost nothing.
// In a cycle with much work, threads share the loops by blocks of instances, in three phases:
//
//     1. register loops       now -> next
//     2. write loops          now -> memories
//     3. commit               next -> now; readers of changed spans become dirty

#include "crew.h"
#include "model.h"

#include <cstring>
#include <memory>
#include <vector>

namespace {

// Words that a loop computes, and the loops that read them: readers[first] .. readers[last - 1].
struct Span {
    u64 offset, bytes;
    u64 first, last;
};

struct Loop {
    Function function;
    const u64 *data;
    u64 count;
    u64 first, last;  // its spans
};

// A connection between bits of a word in the arena and bits of a port value in 32-bit chunks.
struct Tap {
    u64 offset, size, shift, width, at;
    u32 *value;
    u64 span;  // the span to mark when an input changes
};

struct Design {
    char *now, *next;
    // Combinational loops, then register loops, then write loops.
    const Loop *loops;
    u64 at_once, registered, loop_count;
    const Span *spans;
    const u64 *readers;
    const Tap *inputs;
    u64 input_count;
    u32 *reset;
    u64 threads, many, block;  // threads share cycles with >= many words, block instances each
    // Records waveforms before and after an edge; returns 1 to stop.
    int (*record)(u64 clocks, int high);
};

// A port value: chunks of 32 bits.
struct Value {
    u32 *place;
    u64 chunks;
};

// A request for clock edges. Each edge takes one row of input chunks, and the last row remains for
// later edges. Each edge stores one row of output chunks, sampled before the edge.
struct Task {
    u64 rows;  // input rows left
    const Value *inputs;
    u64 input_count;
    const u32 *given;
    const Value *outputs;
    u64 output_count;
    u32 *shown;
    const u32 *busy;  // if not null, the task ends when this value is 0
};

// Simulate up to `count` edges of a task; returns how many have passed. A machine has tick() for a
// clock edge, and failed(), which is true if it must stop.
template <class Machine>
u64 play(Machine &machine, Task &task, u64 count) {
    for (u64 edge = 0; edge < count; edge++) {
        if ((task.busy && !*task.busy) || machine.failed())
            return edge;
        for (u64 k = 0; k < task.input_count && task.rows; k++) {
            std::memcpy(task.inputs[k].place, task.given, task.inputs[k].chunks * sizeof(u32));
            task.given += task.inputs[k].chunks;
        }
        task.rows -= task.rows > 0;
        for (u64 k = 0; k < task.output_count; k++) {
            std::memcpy(task.shown, task.outputs[k].place, task.outputs[k].chunks * sizeof(u32));
            task.shown += task.outputs[k].chunks;
        }
        machine.tick();
    }
    return count;
}

// Returns bits of a value in 32-bit chunks.
inline u64 bits_of(const u32 *value, u64 at, u64 width) {
    u64 word = 0;
    for (u64 k = 0; k < width;) {
        u64 const low = (at + k) % 32, count = 32 - low < width - k ? 32 - low : width - k;
        word |= (u64)(value[(at + k) / 32] >> low & (((u64)1 << count) - 1)) << k;
        k += count;
    }
    return word;
}

inline void put_bits(u32 *value, u64 at, u64 width, u64 word) {
    for (u64 k = 0; k < width;) {
        u64 const low = (at + k) % 32, count = 32 - low < width - k ? 32 - low : width - k;
        u32 const mask = (u32)((((u64)1 << count) - 1) << low);
        u32 &chunk = value[(at + k) / 32];
        chunk = (chunk & ~mask) | ((u32)(word >> k) << low & mask);
        k += count;
    }
}

// A range of instances of a loop.
struct Block {
    u64 loop, first, end;
};

class Model {
public:
    explicit Model(const Design &design) : design_(design) {
        dirty_.assign(design.loop_count, 1);
        wrote_.assign(design.loop_count, 0);
        changed_.assign(design.loops[design.loop_count - 1].last, 0);
    }

    // Simulate one edge with the reset asserted.
    void begin() {
        *design_.reset = 1;
        evaluate();
        finish();
        *design_.reset = 0;
    }

    u64 run(Task &task, u64 count) {
        crew_.reset(new Crew(task.busy ? design_.threads : 1));
        u64 const edges = play(*this, task, count);
        crew_.reset();
        return edges;
    }

    // Run all loops in the next cycle; needed after memories were written from outside.
    void refresh() { dirty_.assign(design_.loop_count, 1); }

    void watch(const Tap *taps, u64 count) {
        taps_.insert(taps_.end(), taps, taps + count);
        show();
    }

    bool failed() const { return failed_; }

    void tick() {
        evaluate();
        finish();
    }

    // Compute all combinational words from inputs and registers.
    void evaluate() {
        take_inputs();
        settle();
        record(0);
    }

    // Simulate the clock edge.
    void finish() {
        take_dirty(design_.at_once, design_.registered, evaluated_);
        take_dirty(design_.registered, design_.loop_count, writing_);
        share(evaluated_, [this](const Block &block) { call(block); });
        share(writing_, [this](const Block &block) {
            if (call(block))
                __atomic_store_n(&wrote_[block.loop], 1, __ATOMIC_RELAXED);
        });
        share(evaluated_, [this](const Block &block) { commit(block); });
        for (u64 k : writing_)
            if (wrote_[k]) {
                wrote_[k] = 0;
                mark(design_.spans[design_.loops[k].first]);
            }
        for (u64 k : evaluated_)
            mark_changed(k);
        settle();
        show();
        record(1);
        clocks_++;
    }

private:
    // Take the dirty loops of a range, and clear their marks.
    void take_dirty(u64 first, u64 end, std::vector<u64> &found) {
        found.clear();
        for (u64 k = first; k < end; k++)
            if (dirty_[k]) {
                dirty_[k] = 0;
                found.push_back(k);
            }
    }

    // Apply a function to all instances of loops, with several threads if there is much work.
    template <class Do>
    void share(const std::vector<u64> &loops, const Do &some) {
        u64 words = 0;
        if (crew_ && !crew_->alone())
            for (u64 k : loops)
                words += design_.loops[k].count * (design_.loops[k].last - design_.loops[k].first);
        if (!words || words < design_.many) {
            for (u64 k : loops)
                some(Block{k, 0, design_.loops[k].count});
            return;
        }
        blocks_.clear();
        for (u64 k : loops)
            for (u64 first = 0, count = design_.loops[k].count; first < count;) {
                u64 const left = count - first, some = left < design_.block ? left : design_.block;
                blocks_.push_back(Block{k, first, first + some});
                first += some;
            }
        crew_->run(blocks_.size(), [&](u64 k) { some(blocks_[k]); });
    }

    int call(const Block &block) {
        const Loop &loop = design_.loops[block.loop];
        return loop.function(design_.now, design_.next, loop.data, block.first, block.end);
    }

    void mark(const Span &span) {
        for (u64 k = span.first; k < span.last; k++)
            dirty_[design_.readers[k]] = 1;
    }

    void commit(const Block &block) {
        const Loop &loop = design_.loops[block.loop];
        for (u64 s = loop.first; s < loop.last; s++) {
            const Span &span = design_.spans[s];
            u64 const size = span.bytes / loop.count, bytes = size * (block.end - block.first);
            u64 const offset = span.offset + size * block.first;
            char *const now = design_.now + offset;
            const char *const next = design_.next + offset;
            if (!std::memcmp(now, next, bytes))
                continue;
            std::memcpy(now, next, bytes);
            __atomic_store_n(&changed_[s], 1, __ATOMIC_RELAXED);
        }
    }

    void mark_changed(u64 k) {
        const Loop &loop = design_.loops[k];
        for (u64 s = loop.first; s < loop.last; s++)
            if (changed_[s]) {
                changed_[s] = 0;
                mark(design_.spans[s]);
            }
    }

    void take_inputs() {
        for (u64 k = 0; k < design_.input_count; k++) {
            const Tap &tap = design_.inputs[k];
            u64 const word = bits_of(tap.value, tap.at, tap.width);
            if (!std::memcmp(design_.now + tap.offset, &word, tap.size))
                continue;
            std::memcpy(design_.now + tap.offset, &word, tap.size);
            mark(design_.spans[tap.span]);
        }
    }

    void settle() {
        bool changed = false;
        for (u64 k = 0; k < design_.at_once; k++)
            if (dirty_[k]) {
                dirty_[k] = 0;
                one_.assign(1, k);
                share(one_, [this](const Block &block) {
                    call(block);
                    commit(block);
                });
                mark_changed(k);
                changed = true;
            }
        if (changed)
            show();
    }

    void show() {
        for (const Tap &tap : taps_) {
            u64 word = 0;
            std::memcpy(&word, design_.now + tap.offset, tap.size);
            put_bits(tap.value, tap.at, tap.width, word >> tap.shift);
        }
    }

    void record(int high) {
        if (design_.record)
            failed_ |= design_.record(clocks_, high);
    }

    const Design &design_;
    u64 clocks_ = 0;
    bool failed_ = false;
    std::vector<u8> dirty_, wrote_, changed_;  // per loop, per loop, per span
    std::vector<u64> evaluated_, writing_, one_;
    std::vector<Block> blocks_;
    std::unique_ptr<Crew> crew_;
    std::vector<Tap> taps_;
};

}  // namespace

EXPORT void *model_open(const Design *design) { return new Model(*design); }

EXPORT u64 model_play(void *model, Task *task, u64 count) {
    return static_cast<Model *>(model)->run(*task, count);
}

EXPORT void model_refresh(void *model) { static_cast<Model *>(model)->refresh(); }

// Copy these taps to their values after every change from now on.
EXPORT void model_watch(void *model, const Tap *taps, uint64_t count) {
    static_cast<Model *>(model)->watch(taps, count);
}

EXPORT void model_begin(void *model) { static_cast<Model *>(model)->begin(); }

EXPORT void model_close(void *model) { delete static_cast<Model *>(model); }
