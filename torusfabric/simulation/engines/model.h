// The interface of loop functions, and their helpers.

#ifndef TORUSFABRIC_MODEL_H
#define TORUSFABRIC_MODEL_H

#include <cstddef>
#include <cstdint>
#include <cstring>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;
typedef unsigned __int128 u128;

#define EXPORT extern "C" __attribute__((visibility("default")))

// The arena before and after the clock edge; the data of the loop; the first instance, and the end.
#define LOOP_ARGUMENTS \
    const char *__restrict now, char *__restrict next, const u64 *T, size_t first, size_t end

// A loop function; returns 1 if it has written into a memory.
typedef int (*Function)(LOOP_ARGUMENTS);

// Returns the eight bytes at an address without alignment.
inline u64 any_word(const char *address) {
    u64 word;
    std::memcpy(&word, address, sizeof word);
    return word;
}

#endif
