// A thread pool: threads take numbered blocks of work from one counter.

#ifndef TORUSFABRIC_CREW_H
#define TORUSFABRIC_CREW_H

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace {

// The calling thread works, too, and takes every block that no other thread has begun. It therefore
// waits only for blocks in progress, never for a thread that has no processor.
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

    // Execute `count` blocks in any order; returns when all are done.
    void run(uint64_t count, const std::function<void(uint64_t)> &block) {
        block_ = &block;
        left_ = count;
        // Lower half: blocks not begun. Upper half: turn number, against late compare-exchanges.
        todo_ = (uint64_t)++turn_ << 32 | count;
        while (take())
            ;
        while (left_)
            pause();
    }

private:
    // Execute one block that no thread has begun; returns false if there is none.
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
