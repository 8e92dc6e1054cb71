// Drives the streams of a compiled model: sources and sinks, each of which rests now and then.

#include "model.cc"

namespace {

// xorshift64*, of which the upper half counts.
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}

    uint32_t next() {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return (uint32_t)(state_ * UINT64_C(2685821657736338717) >> 32);
    }

    // Whether to rest, which is as likely as `stall` is to 2 ** 32.
    bool rests(uint64_t stall) { return next() < stall; }

private:
    uint64_t state_;
};

// The signals of a stream; `keep`, and `tag`, which is tdest or tid, are null where there are none.
struct Signals {
    uint32_t *valid, *ready, *data, *keep, *last, *tag;
    uint64_t chunks, data_bits, keep_chunks, keep_bits, tag_bits;

    // Where in a beat it says whether that is the last.
    uint64_t last_at() const { return chunks + keep_chunks; }
};

// A beat is so many chunks of data, and of what is kept, then whether it is the last of its packet,
// then its tag.
struct Source {
    Signals signals;
    const uint32_t *beats;
    uint64_t count, sent, stall;
};

// What comes is written down as a beat is, with the cycle behind it.
struct Sink {
    Signals signals;
    uint32_t *beats;
    uint64_t expected, capacity, count, stall;
};

struct StreamTask {
    Source *sources;
    uint64_t source_count;
    Sink *sinks;
    uint64_t sink_count;
    const uint32_t *busy, *cycles;
    uint32_t *runs;  // of each run that ended, the cycle and the cycles it took
    uint64_t run_capacity, run_count;
    const uint32_t *error;
    uint32_t *errors;  // what `error` has become, each time that it has changed
    uint64_t error_capacity, error_count;
    uint64_t patience, settling, seed;
    uint64_t clocks;
    uint64_t unsteady;  // the number of a sink, from 1, at which a word did not wait; 0 for none
    volatile uint64_t done;
    volatile uint64_t stop;
    uint64_t file_error;
};

// Chunks that a beat has behind these.
enum { LAST, TAG, CYCLE };

inline void scramble(uint32_t *value, uint64_t bits, Random &random) {
    for (uint64_t low = 0; low < bits; low += 32)
        value[low / 32] = random.next() >> (bits - low < 32 ? 32 - (bits - low) : 0);
}

class Driver {
public:
    explicit Driver(Source &source) : source_(source) {}

    void offer(Random &random) {
        const Signals &s = source_.signals;
        if (offered_)
            return;
        offered_ = source_.sent < source_.count && !random.rests(source_.stall);
        *s.valid = offered_;
        if (!offered_) {
            scramble(s.data, s.data_bits, random);
            scramble(s.last, 1, random);
            if (s.keep)
                scramble(s.keep, s.keep_bits, random);
            if (s.tag)
                scramble(s.tag, s.tag_bits, random);
            return;
        }
        const uint32_t *const beat = source_.beats + source_.sent * (s.last_at() + 2);
        std::memcpy(s.data, beat, s.chunks * sizeof(uint32_t));
        if (s.keep)
            std::memcpy(s.keep, beat + s.chunks, s.keep_chunks * sizeof(uint32_t));
        *s.last = beat[s.last_at() + LAST];
        if (s.tag)
            *s.tag = beat[s.last_at() + TAG];
    }

    bool look() {
        if (!offered_ || !*source_.signals.ready)
            return false;
        source_.sent++;
        offered_ = false;
        return true;
    }

private:
    Source &source_;
    bool offered_ = false;
};

class Taker {
public:
    explicit Taker(Sink &sink) : sink_(sink), shown_(sink.signals.last_at() + 2), held_(shown_) {}

    void offer(Random &random) { *sink_.signals.ready = !random.rests(sink_.stall); }

    bool look(uint64_t cycle, bool &steady) {
        const Signals &s = sink_.signals;
        if (!*s.valid) {
            steady &= !waits_;
            return false;
        }
        std::memcpy(shown_.data(), s.data, s.chunks * sizeof(uint32_t));
        if (s.keep)
            std::memcpy(shown_.data() + s.chunks, s.keep, s.keep_chunks * sizeof(uint32_t));
        shown_[s.last_at() + LAST] = *s.last;
        shown_[s.last_at() + TAG] = s.tag ? *s.tag : 0;
        steady &= !waits_ || shown_ == held_;
        held_ = shown_;
        waits_ = !*s.ready;
        if (waits_)
            return false;
        if (sink_.count < sink_.capacity) {
            uint32_t *const place = sink_.beats + sink_.count * (s.last_at() + 3);
            std::memcpy(place, shown_.data(), shown_.size() * sizeof(uint32_t));
            place[s.last_at() + CYCLE] = (uint32_t)cycle;
        }
        sink_.count++;
        return true;
    }

private:
    Sink &sink_;
    std::vector<uint32_t> shown_, held_;
    bool waits_ = false;
};

// Until nothing happens any more.
int drive_streams(Model &model, StreamTask &task) {
    Random random(task.seed);
    std::vector<Driver> drivers(task.sources, task.sources + task.source_count);
    std::vector<Taker> takers(task.sinks, task.sinks + task.sink_count);
    uint64_t left = 0, quiet = 0;
    for (uint64_t k = 0; k < task.source_count; k++)
        left += task.sources[k].count;
    for (uint64_t k = 0; k < task.sink_count; k++)
        left += task.sinks[k].expected;
    bool was_busy = false;
    uint32_t last_error = 0;
    int outcome = DONE;
    while (outcome == DONE && quiet < (left ? task.patience : task.settling)) {
        for (Driver &driver : drivers)
            driver.offer(random);
        for (Taker &taker : takers)
            taker.offer(random);
        model.evaluate();
        uint64_t passed = 0;
        for (Driver &driver : drivers)
            passed += driver.look();
        for (uint64_t k = 0; k < takers.size(); k++) {
            bool steady = true;
            passed += takers[k].look(task.clocks, steady);
            if (!steady)
                task.unsteady = k + 1;
        }
        bool const busy = *task.busy;
        if (was_busy && !busy && task.run_count < task.run_capacity) {
            task.runs[2 * task.run_count] = (uint32_t)task.clocks;
            task.runs[2 * task.run_count++ + 1] = *task.cycles;
        }
        was_busy = busy;
        if (*task.error != last_error && task.error_count < task.error_capacity)
            task.errors[task.error_count++] = *task.error;
        last_error = *task.error;
        model.finish();
        task.clocks++;
        // What comes beyond what must may come for ever.
        quiet = passed && left ? 0 : quiet + 1;
        left -= passed < left ? passed : left;
        task.done = task.done + passed;
        if (task.stop)
            outcome = STOPPED;
        else if (model.wave_error())
            outcome = NO_FILE;
    }
    model.flush_waves();
    task.file_error = model.wave_error();
    return task.file_error && outcome != STOPPED ? NO_FILE : outcome;
}

}  // namespace

EXPORT int model_run_streams(void *model, StreamTask *task) {
    return drive_streams(*static_cast<Model *>(model), *task);
}
