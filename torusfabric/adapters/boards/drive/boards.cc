// Simulation of several boards, each a model with a clock of its own, and of the cables between
// the boards.
//
// A cable ends at an elastic buffer. The sending board writes the buffer at falling edges of its
// clock; the receiving board reads it at rising edges of its own clock. Buffers belong to two
// clocks, so they are not part of the models, but are implemented here. The structs are laid out
// by compiled.py.

#include "model.cc"

namespace {

struct Cable {
    uint64_t from, to;               // numbers of the sending and of the receiving board
    const uint32_t *word, *frame;    // outputs of the sending board
    const uint32_t *at;              // output of the receiving board: address to read
    uint32_t *head, *count;          // its inputs: word at the address; Gray code of words written
    uint32_t *memory;                // words of the buffer, each with its frame
    uint64_t depth, written;         // words of the buffer; words written, modulo 2 * depth
    uint64_t late;                   // delay of a word, in words, beyond the falling edge
};

struct BoardClock {
    uint64_t period, next;           // femtoseconds: period, and time of the next rising edge
    uint64_t falling;                // 1 if the falling edge before it is still to come
};

struct System {
    void *const *models;
    BoardClock *clocks;
    uint64_t boards;
    Cable *cables;
    uint64_t cable_count;
    uint64_t width;                  // bits of a word, without the two bits of its frame
    uint64_t threshold;              // a word is changed if a random number of 63 bits is below
    uint64_t random;                 // state of the random generator
    uint64_t changed;                // number of words that cables have changed
};

// Parameters and results of a run on all boards. Arrays have one entry for each board.
struct BoardsRun {
    const uint64_t *waits;           // clock edges before the start of each board
    uint64_t patience;               // limit of the edges of each board
    uint32_t *const *start;          // inputs of the boards
    const uint32_t *const *busy, *const *counts;  // outputs: run under way, cycles of the run
    uint32_t *cycles;                // result: cycles that each board counted
    uint64_t edges;                  // result: clock edges of all boards together
};

class Boards {
public:
    explicit Boards(System &system) : system_(system) {}

    Model &model(uint64_t board) { return *static_cast<Model *>(system_.models[board]); }

    // Simulate up to the next rising edge of any clock, inclusive; return the number of its board.
    uint64_t edge() {
        for (;;) {
            uint64_t first = 0, when = ~(uint64_t)0;
            for (uint64_t k = 0; k < system_.boards; k++) {
                const BoardClock &clock = system_.clocks[k];
                uint64_t const at = clock.next - (clock.falling ? clock.period / 2 : 0);
                if (at < when)
                    first = k, when = at;
            }
            BoardClock &clock = system_.clocks[first];
            clock.falling = !clock.falling;
            if (!clock.falling) {
                send(first);
                continue;
            }
            clock.next += clock.period;
            receive(first);
            model(first).tick();
            return first;
        }
    }

private:
    uint64_t random() {
        uint64_t z = (system_.random += 0x9E3779B97F4A7C15);
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
        z = (z ^ z >> 27) * 0x94D049BB133111EB;
        return z ^ z >> 31;
    }

    void send(uint64_t board) {
        uint64_t const width = system_.width, chunks = (width + 33) / 32;
        for (uint64_t k = 0; k < system_.cable_count; k++) {
            Cable &cable = system_.cables[k];
            if (cable.from != board)
                continue;
            uint32_t *const row = cable.memory + cable.written % cable.depth * chunks;
            std::memset(row, 0, chunks * sizeof *row);
            std::memcpy(row, cable.word, (width + 31) / 32 * sizeof *row);
            for (uint64_t bit = 0; bit < 2; bit++)
                row[(width + bit) / 32] |= (*cable.frame >> bit & 1) << (width + bit) % 32;
            if (system_.threshold && random() >> 1 < system_.threshold) {
                uint64_t const bit = random() % (width + 2);
                row[bit / 32] ^= (uint32_t)1 << bit % 32;
                system_.changed++;
            }
            cable.written = (cable.written + 1) % (2 * cable.depth);
        }
    }

    void receive(uint64_t board) {
        uint64_t const chunks = (system_.width + 33) / 32;
        for (uint64_t k = 0; k < system_.cable_count; k++) {
            Cable &cable = system_.cables[k];
            if (cable.to != board)
                continue;
            std::memcpy(cable.head, cable.memory + *cable.at % cable.depth * chunks,
                        chunks * sizeof *cable.head);
            uint64_t const came = (cable.written + 2 * cable.depth - cable.late) % (2 * cable.depth);
            *cable.count = (uint32_t)(came ^ came >> 1);
        }
    }

    System &system_;
};

// One selected board, whose tick lets all boards run up to the next rising edge of this board.
class BoardMachine {
public:
    BoardMachine(Boards &boards, uint64_t board) : boards_(boards), board_(board) {}

    bool failed() const { return false; }

    void tick() {
        while (boards_.edge() != board_) {
        }
    }

private:
    Boards &boards_;
    uint64_t board_;
};

// Start all boards, and wait until none is busy; return 0 if all are done, 1 after too many edges.
int run_boards(Boards &boards, uint64_t count, BoardsRun &run) {
    std::vector<uint64_t> edges(count, 0), ended(count, 0);
    uint64_t left = count;
    for (run.edges = 0; left; run.edges++) {
        for (uint64_t k = 0; k < count; k++)
            *run.start[k] = edges[k] == run.waits[k];
        uint64_t const board = boards.edge();
        edges[board]++;
        if (edges[board] > run.waits[board] + 1 && !ended[board] && !*run.busy[board]) {
            run.cycles[board] = *run.counts[board];
            ended[board] = 1;
            left--;
        }
        if (edges[board] == run.patience)
            return 1;
    }
    return 0;
}

}  // namespace

EXPORT u64 model_play_board(System *system, uint64_t board, Task *task, u64 count) {
    Boards boards(*system);
    BoardMachine machine(boards, board);
    return play(machine, *task, count);
}

EXPORT int model_run_boards(System *system, BoardsRun *run) {
    Boards boards(*system);
    return run_boards(boards, system->boards, *run);
}
