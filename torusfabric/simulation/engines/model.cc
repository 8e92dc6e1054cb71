// Runs a compiled model: clock edges, the host port, and waves.
//
// A clock edge runs the loops of which something that they read has changed; whatever else there is
// stays as it is. So what waits costs nothing. Where there is much to do, threads share it by blocks
// of instances: first what registers become, then what is written, then that it takes effect.

#include "crew.h"
#include "drive.h"
#include "model.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

namespace {

// Words that a loop works out, and the loops that read them: readers[first] .. readers[last - 1].
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

// Bits of a word among all, and of a value outside that has 32 bits a chunk.
struct Tap {
    u64 offset;
    u32 size, shift, width, at;
    u32 *value;
};

struct Net {
    const char *scope;
    const char *name;
    const uint32_t *value;
    uint64_t low, width;  // the bits shown
};

struct Design {
    char *now, *next;
    // First those whose words follow at once, then those of registers, then those that write.
    const Loop *loops;
    u64 at_once, registered, loop_count;
    const Span *spans;
    const u32 *readers;
    const Tap *inputs;
    const u64 *input_spans;    // the span of each
    u64 input_count;
    u32 *reset;
    uint32_t **places;         // start, host_we, host_node, host_addr, host_wdata
    const uint32_t *busy, *done, *cycles, *host_rdata;
    u64 threads, many, block;  // they share cycles with so many words by so many instances
    const Net *nets;           // to be written as waves
    u64 net_count;
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

// Bits of a value that has 32 bits a chunk.
inline u64 bits_of(const u32 *value, u32 at, u32 width) {
    u64 word = 0;
    for (u32 k = 0; k < width;) {
        u32 const low = (at + k) % 32, count = 32 - low < width - k ? 32 - low : width - k;
        word |= (u64)(value[(at + k) / 32] >> low & (((u64)1 << count) - 1)) << k;
        k += count;
    }
    return word;
}

inline void put_bits(u32 *value, u32 at, u32 width, u64 word) {
    for (u32 k = 0; k < width;) {
        u32 const low = (at + k) % 32, count = 32 - low < width - k ? 32 - low : width - k;
        u32 const mask = (u32)((((u64)1 << count) - 1) << low);
        u32 &chunk = value[(at + k) / 32];
        chunk = (chunk & ~mask) | ((u32)(word >> k) << low & mask);
        k += count;
    }
}

// Some instances of a loop.
struct Block {
    u64 loop, first, end;
};

class Model {
public:
    Model(const Design &design) : design_(design), wave_(design) {
        dirty_.assign(design.loop_count, 1);
        wrote_.assign(design.loop_count, 0);
        changed_.assign(design.loops[design.loop_count - 1].last, 0);
    }

    // An edge with the reset held, as a design that has just been switched on needs it.
    void begin() {
        *design_.reset = 1;
        evaluate(true);
        finish();
        *design_.reset = 0;
    }

    bool ready() const { return !design_.wave || wave_.open(); }

    int run(Task &task) {
        clocks_ = 0;
        refresh();
        crew_.reset(new Crew(task.step == RUN ? design_.threads : 1));
        int const outcome = drive(*this, task);
        crew_.reset();
        task.clocks = clocks_;
        return outcome;
    }

    // Work out everything anew: memories may have been changed meanwhile.
    void refresh() { dirty_.assign(design_.loop_count, 1); }

    void watch(const Tap *taps, u64 count) {
        taps_.insert(taps_.end(), taps, taps + count);
        show();
    }

    int wave_error() const { return wave_.error(); }
    void flush_waves() { wave_.flush(); }

    bool busy() const { return *design_.busy; }
    bool done() const { return *design_.done; }
    uint32_t cycles() const { return *design_.cycles; }
    const uint32_t *host_rdata() const { return design_.host_rdata; }

    void set(Input input, const uint32_t *value, uint64_t chunks) {
        std::memcpy(design_.places[input], value, chunks * sizeof(uint32_t));
    }

    void tick() {
        evaluate();
        finish();
    }

    // Work out all that follows from inputs and registers at once.
    void evaluate(bool reset = false) {
        take_inputs();
        settle();
        before(reset);
    }

    // Let the clock edge take effect.
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
        after();
    }

private:
    // The loops that something has changed for, which are done now.
    void take_dirty(u64 first, u64 end, std::vector<u64> &found) {
        found.clear();
        for (u64 k = first; k < end; k++)
            if (dirty_[k]) {
                dirty_[k] = 0;
                found.push_back(k);
            }
    }

    // Do something for all instances of loops, by several threads where that pays.
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
            mark(design_.spans[design_.input_spans[k]]);
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

    void before(bool reset) {
        if (wave_.open())
            wave_.write(all_clocks_, false, reset);
    }

    void after() {
        clocks_++;
        settle();
        show();
        if (wave_.open())
            wave_.write(all_clocks_++, true, false);
    }

    const Design &design_;
    Wave wave_;
    u64 clocks_ = 0, all_clocks_ = 0;
    std::vector<u8> dirty_, wrote_, changed_;  // of loops, of loops, of spans
    std::vector<u64> evaluated_, writing_, one_;
    std::vector<Block> blocks_;
    std::unique_ptr<Crew> crew_;
    std::vector<Tap> taps_;
};

}  // namespace

EXPORT void *model_open(const Design *design) {
    Model *const model = new Model(*design);
    if (model->ready())
        return model;
    delete model;
    return nullptr;
}

EXPORT int model_run(void *model, Task *task) { return static_cast<Model *>(model)->run(*task); }

// Let taps show what they show from now on.
EXPORT void model_watch(void *model, const Tap *taps, uint64_t count) {
    static_cast<Model *>(model)->watch(taps, count);
}

EXPORT void model_begin(void *model) { static_cast<Model *>(model)->begin(); }

EXPORT void model_tick(void *model) { static_cast<Model *>(model)->tick(); }

EXPORT void model_close(void *model) { delete static_cast<Model *>(model); }
