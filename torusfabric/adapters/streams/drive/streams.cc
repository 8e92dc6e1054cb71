// Driver of the streams of a compiled model: sources and sinks, all of which stall at random. The
// structs are laid out by compiled.py.

#include "model.cc"

namespace {

// The random generator xorshift64*; it returns the upper half of each number.
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}

    uint32_t next() {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return (uint32_t)(state_ * UINT64_C(2685821657736338717) >> 32);
    }

    // Return true with probability stall / 2^32: the port stalls in this cycle.
    bool rests(uint64_t stall) { return next() < stall; }

    void scramble(uint32_t *value, uint64_t bits) {
        for (uint64_t low = 0; low < bits; low += 32)
            value[low / 32] = next() >> (bits - low < 32 ? 32 - (bits - low) : 0);
    }

private:
    uint64_t state_;
};

// A signal of a stream besides its handshake.
struct Field {
    uint32_t *value;
    uint64_t chunks, bits;
};

// One end of a stream: a source or a sink. A row of `beats` has the chunks of all fields of a beat.
// At a sink, the cycle in which the beat arrived follows.
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
    uint32_t *runs;  // for each run that ended: the cycle of its end, and its number of cycles
    uint64_t run_capacity, run_count;
    const uint32_t *error;
    uint32_t *errors;  // value of the output `error` after each change
    uint64_t error_capacity, error_count;
    uint64_t beats;  // number of beats that have to be transferred
    uint64_t patience, settling, seed;
    uint64_t clocks;
    uint64_t unsteady;  // number of a sink, from 1, at which a waiting word changed; 0 for none
    uint64_t done;
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

// The simulation of all streams of a model.
class Traffic {
public:
    Traffic(Model &model, StreamTask &task)
        : model_(model), task_(task), random_(task.seed),
          drivers_(task.sources, task.sources + task.source_count),
          takers_(task.sinks, task.sinks + task.sink_count), left_(task.beats) {}

    // Simulate `count` clock edges, or fewer if the simulation ends; return the number of edges.
    u64 run(u64 count) {
        for (u64 edge = 0; edge < count; edge++) {
            if (quiet_ >= (left_ ? task_.patience : task_.settling) || model_.failed())
                return edge;
            pass();
        }
        return count;
    }

private:
    void pass() {
        for (Driver &driver : drivers_)
            driver.offer(random_);
        for (Taker &taker : takers_)
            taker.offer(random_);
        model_.evaluate();
        uint64_t passed = 0;
        for (Driver &driver : drivers_)
            passed += driver.look();
        for (uint64_t k = 0; k < takers_.size(); k++) {
            bool steady = true;
            passed += takers_[k].look(task_.clocks, steady);
            if (!steady)
                task_.unsteady = k + 1;
        }
        bool const busy = *task_.busy;
        if (was_busy_ && !busy && task_.run_count < task_.run_capacity) {
            task_.runs[2 * task_.run_count] = (uint32_t)task_.clocks;
            task_.runs[2 * task_.run_count++ + 1] = *task_.cycles;
        }
        was_busy_ = busy;
        if (*task_.error != last_error_ && task_.error_count < task_.error_capacity)
            task_.errors[task_.error_count++] = *task_.error;
        last_error_ = *task_.error;
        model_.finish();
        task_.clocks++;
        // After all expected beats, further ones must not keep the simulation alive.
        quiet_ = passed && left_ ? 0 : quiet_ + 1;
        left_ -= passed < left_ ? passed : left_;
        task_.done += passed;
    }

    Model &model_;
    StreamTask &task_;
    Random random_;
    std::vector<Driver> drivers_;
    std::vector<Taker> takers_;
    uint64_t left_, quiet_ = 0;
    bool was_busy_ = false;
    uint32_t last_error_ = 0;
};

}  // namespace

EXPORT void *streams_open(void *model, StreamTask *task) {
    return new Traffic(*static_cast<Model *>(model), *task);
}

EXPORT u64 streams_run(void *traffic, u64 count) {
    return static_cast<Traffic *>(traffic)->run(count);
}

EXPORT void streams_close(void *traffic) { delete static_cast<Traffic *>(traffic); }
