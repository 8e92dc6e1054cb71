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

    void scramble(uint32_t *value, uint64_t bits) {
        for (uint64_t low = 0; low < bits; low += 32)
            value[low / 32] = next() >> (bits - low < 32 ? 32 - (bits - low) : 0);
    }

private:
    uint64_t state_;
};

// A signal of a stream that goes with its words.
struct Field {
    uint32_t *value;
    uint64_t chunks, bits;
};

// One end of a stream. A row of beats has the chunks of all fields; where beats arrive, the cycle
// follows.
struct Stream {
    uint32_t *valid, *ready;
    const Field *fields;
    uint64_t field_count;
    uint32_t *beats;
    uint64_t row, capacity, passed, stall;
};

struct StreamTask {
    Stream *sources;
    uint64_t source_count;
    Stream *sinks;
    uint64_t sink_count;
    const uint32_t *busy, *cycles;
    uint32_t *runs;  // of each run that ended, the cycle and the cycles it took
    uint64_t run_capacity, run_count;
    const uint32_t *error;
    uint32_t *errors;  // what `error` has become, each time that it has changed
    uint64_t error_capacity, error_count;
    uint64_t beats;  // those that have to pass
    uint64_t patience, settling, seed;
    uint64_t clocks;
    uint64_t unsteady;  // the number of a sink, from 1, at which a word did not wait; 0 for none
    volatile uint64_t done;
    volatile uint64_t stop;
};

class Driver {
public:
    explicit Driver(Stream &stream) : stream_(stream) {}

    void offer(Random &random) {
        if (offered_)
            return;
        offered_ = stream_.passed < stream_.capacity && !random.rests(stream_.stall);
        *stream_.valid = offered_;
        const uint32_t *beat = stream_.beats + stream_.passed * stream_.row;
        for (uint64_t k = 0; k < stream_.field_count; k++) {
            const Field &field = stream_.fields[k];
            if (offered_)
                std::memcpy(field.value, beat, field.chunks * sizeof(uint32_t));
            else
                random.scramble(field.value, field.bits);
            beat += field.chunks;
        }
    }

    bool look() {
        if (!offered_ || !*stream_.ready)
            return false;
        stream_.passed++;
        offered_ = false;
        return true;
    }

private:
    Stream &stream_;
    bool offered_ = false;
};

class Taker {
public:
    explicit Taker(Stream &stream) : stream_(stream), shown_(stream.row), held_(stream.row) {}

    void offer(Random &random) { *stream_.ready = !random.rests(stream_.stall); }

    bool look(uint64_t cycle, bool &steady) {
        if (!*stream_.valid) {
            steady &= !waits_;
            return false;
        }
        uint32_t *shown = shown_.data();
        for (uint64_t k = 0; k < stream_.field_count; k++) {
            const Field &field = stream_.fields[k];
            std::memcpy(shown, field.value, field.chunks * sizeof(uint32_t));
            shown += field.chunks;
        }
        steady &= !waits_ || shown_ == held_;
        held_ = shown_;
        waits_ = !*stream_.ready;
        if (waits_)
            return false;
        if (stream_.passed < stream_.capacity) {
            uint32_t *const place = stream_.beats + stream_.passed * (stream_.row + 1);
            std::memcpy(place, shown_.data(), stream_.row * sizeof(uint32_t));
            place[stream_.row] = (uint32_t)cycle;
        }
        stream_.passed++;
        return true;
    }

private:
    Stream &stream_;
    std::vector<uint32_t> shown_, held_;
    bool waits_ = false;
};

// Until nothing happens any more.
int drive_streams(Model &model, StreamTask &task) {
    Random random(task.seed);
    std::vector<Driver> drivers(task.sources, task.sources + task.source_count);
    std::vector<Taker> takers(task.sinks, task.sinks + task.sink_count);
    uint64_t left = task.beats, quiet = 0;
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
        if (task.stop || model.failed())
            outcome = STOPPED;
    }
    return outcome;
}

}  // namespace

EXPORT int model_run_streams(void *model, StreamTask *task) {
    return drive_streams(*static_cast<Model *>(model), *task);
}
