// Threads that carry out blocks of work side by side, from a queue that all of them take from.

#ifndef TORUSFABRIC_CREW_H
#define TORUSFABRIC_CREW_H

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace {

// Whoever calls works, too, and takes what nobody else has begun: it waits for no thread that does
// not run, but for what is under way.
class Crew {
public:
    explicit Crew(uint64_t threads) {
        for (uint64_t k = 1; k < threads; k++)
            others_.emplace_back([this] { serve(); });
    }

    ~Crew() {
        ends_ = true;
        for (std::thread &other : others_)
            other.join();
    }

    bool alone() const { return others_.empty(); }

    // Do a number of blocks, in any order; returns when all are done.
    void run(uint64_t count, const std::function<void(uint64_t)> &block) {
        block_ = &block;
        left_ = count;
        // The count of those not begun, and in the upper half which turn it is.
        todo_ = (uint64_t)++turn_ << 32 | count;
        while (take())
            ;
        while (left_)
            pause();
    }

private:
    // Do one block, if there is one that nobody has begun.
    bool take() {
        uint64_t todo = todo_;
        while ((uint32_t)todo)
            if (todo_.compare_exchange_weak(todo, todo - 1)) {
                (*block_)((uint32_t)todo - 1);
                left_--;
                return true;
            }
        return false;
    }

    void serve() {
        for (uint32_t idle = 0; !ends_;)
            if (take())
                idle = 0;
            else if (++idle < SPINS)
                pause();
            else
                std::this_thread::yield();
    }

    static void pause() {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#else
        std::this_thread::yield();
#endif
    }

    static constexpr uint32_t SPINS = 1000;

    std::vector<std::thread> others_;
    const std::function<void(uint64_t)> *block_ = nullptr;
    uint32_t turn_ = 0;
    std::atomic<uint64_t> todo_{0}, left_{0};
    std::atomic<bool> ends_{false};
};

}  // namespace

#endif
