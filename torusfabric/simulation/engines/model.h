// Many instances of a few modules, each module compiled once.
//
// A class is a module as CXXRTL wrote it, with a `Glue` that knows its ports. Its functions work on
// arrays of instances. Where an input comes from is data: a row of addresses for each instance.

#ifndef TORUSFABRIC_MODEL_H
#define TORUSFABRIC_MODEL_H

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace model {

// An address, or a number of bits to skip there.
typedef uintptr_t Word;

struct Class {
    void *(*make)(size_t count);
    void (*destroy)(void *instances);
    // Where the value of an output lies: before the clock edge, and once evaluated if not a register.
    const uint32_t *(*output)(void *instances, size_t index, size_t port);
    // Where the first word of a bank lies, or null; of a register, what it becomes for `copy` 1.
    uint32_t *(*bank)(void *instances, size_t index, size_t number, size_t copy);
    // Read the inputs and work out what follows from them, for instances first .. last - 1.
    void (*eval)(void *instances, const Word *rows, const Word *shared, size_t first, size_t last,
                 bool edge);
    // Let the clock edge take effect; returns whether it changed anything.
    bool (*commit)(void *instances, size_t first, size_t last);
    // Hold, or no longer hold, the reset of all instances.
    void (*reset)(void *instances, size_t count, bool on);
};

}  // namespace model

#ifdef CXXRTL_H

namespace model {

template <size_t Width>
uint32_t *bank(cxxrtl::memory<Width> &memory, size_t copy) {
    return copy ? nullptr : memory.data[0].data;
}

template <size_t Width>
uint32_t *bank(cxxrtl::wire<Width> &word, size_t copy) {
    return copy ? word.next.data : word.curr.data;
}

inline const uint32_t *at(Word word) { return reinterpret_cast<const uint32_t *>(word); }

// Write bits `skip` and following of a source to bits At .. At + Bits - 1 of an input.
template <size_t At, size_t Bits, size_t Width>
CXXRTL_ALWAYS_INLINE void put(cxxrtl::value<Width> &into, const uint32_t *from, size_t skip) {
    for (size_t k = 0; k < Bits; k += 32) {
        size_t const count = Bits - k < 32 ? Bits - k : 32;
        size_t const low = (skip + k) % 32, place = (At + k) % 32;
        const uint32_t *const source = from + (skip + k) / 32;
        uint64_t word = source[0] >> low;
        if (low + count > 32)
            word |= (uint64_t)source[1] << (32 - low);
        uint64_t const mask = ((uint64_t)1 << count) - 1;
        uint32_t *const target = &into.data[(At + k) / 32];
        if (count == 32 && place == 0) {
            target[0] = (uint32_t)word;
            continue;
        }
        word = (word & mask) << place;
        target[0] = (target[0] & ~(uint32_t)(mask << place)) | (uint32_t)word;
        if (place + count > 32)
            target[1] = (target[1] & ~(uint32_t)(mask << place >> 32)) | (uint32_t)(word >> 32);
    }
}

// A ROM with a register behind it. Its rows, each as long as a value of so many bits, are data.
template <size_t Bits>
struct Rom {
    cxxrtl::value<32> p_address;
    cxxrtl::value<1> p_clk, prev_p_clk;
    cxxrtl::wire<Bits> p_data;
    const uint32_t *rows;
    size_t depth;

    void eval(std::nullptr_t) {
        if (!p_clk || prev_p_clk)
            return;
        size_t const row = p_address.data[0] < depth ? p_address.data[0] : depth - 1;
        std::memcpy(p_data.next.data, rows + row * p_data.next.chunks, sizeof p_data.next.data);
    }

    template <class Observer>
    bool commit(Observer &observer) {
        return p_data.commit(observer);
    }
};

template <class Glue>
struct Describe {
    typedef typename Glue::Design Design;

    static void *make(size_t count) { return new Design[count]; }

    static void destroy(void *instances) { delete[] static_cast<Design *>(instances); }

    static const uint32_t *output(void *instances, size_t index, size_t port) {
        return Glue::output(static_cast<Design *>(instances)[index], port);
    }

    static uint32_t *bank(void *instances, size_t index, size_t number, size_t copy) {
        return Glue::bank(static_cast<Design *>(instances)[index], number, copy);
    }

    template <bool Edge>
    static void eval_all(Design *design, const Word *rows, const Word *shared, size_t first,
                         size_t last) {
        for (size_t k = first; k < last; k++) {
            Glue::gather(design[k], rows + k * Glue::columns, shared);
            Glue::clock(design[k], Edge);
            design[k].Design::eval(nullptr);
        }
    }

    static void eval(void *instances, const Word *rows, const Word *shared, size_t first,
                     size_t last, bool edge) {
        Design *const design = static_cast<Design *>(instances);
        if (edge)
            eval_all<true>(design, rows, shared, first, last);
        else
            eval_all<false>(design, rows, shared, first, last);
    }

    static bool commit(void *instances, size_t first, size_t last) {
        Design *const design = static_cast<Design *>(instances);
        cxxrtl::observer nobody;
        bool changed = false;
        for (size_t k = first; k < last; k++)
            changed |= design[k].Design::commit(nobody);
        return changed;
    }

    static void reset(void *instances, size_t count, bool on) {
        for (size_t k = 0; k < count; k++)
            Glue::reset(static_cast<Design *>(instances)[k], on);
    }

    static constexpr Class value() { return {make, destroy, output, bank, eval, commit, reset}; }
};

}  // namespace model

#endif
#endif
