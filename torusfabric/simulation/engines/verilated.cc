// Runs a verilated fabric through its host port; WAVES, ROOT and the ports are put in before.

#include "drive.h"
#include "verilated.h"

#include <cerrno>

namespace {

// What is sampled with the start, as far as the fabric leaves a choice.
struct Choice {
    uint32_t mode, length, root, operation;
};

// A port as the model holds it: an integer, or an array of 32 bits each.
template <class Port>
void put(Port &port, const uint32_t *value, uint64_t chunks) {
    uint64_t word = value[0];
    if (chunks > 1)
        word |= (uint64_t)value[1] << 32;
    port = (Port)word;
}

template <std::size_t Words>
void put(VlWide<Words> &port, const uint32_t *value, uint64_t chunks) {
    std::memcpy(port.data(), value, chunks * sizeof(uint32_t));
}

template <class Port>
const uint32_t *get(const Port &port, uint64_t &word) {
    word = port;
    return reinterpret_cast<const uint32_t *>(&word);
}

template <std::size_t Words>
const uint32_t *get(const VlWide<Words> &port, uint64_t &) {
    return port.data();
}

#ifdef WAVES
// Notes an error, which Verilator's own file would end the process for, and takes what follows.
class WaveFile : public VerilatedVcdFile {
public:
    ssize_t write(const char *bytes, ssize_t length) override {
        if (error)
            return length;
        ssize_t const got = VerilatedVcdFile::write(bytes, length);
        if (got > 0 || errno == EINTR || errno == EAGAIN)
            return got;
        error = errno ? errno : EIO;
        return length;
    }

    int error = 0;
};
#endif

class Machine {
public:
    Machine(const char *wave) : top_(&context_) {
#ifdef WAVES
        if (wave) {
            context_.traceEverOn(true);
            top_.trace(&wave_, 99);
            wave_.open(wave);
        }
#endif
        // An edge with the reset held, as a design that has just been switched on needs it.
        top_.start = 0;
        top_.host_we = 0;
        top_.rst = 1;
        tick();
        top_.rst = 0;
    }

    bool ready() const {
#ifdef WAVES
        return wave_.isOpen();
#else
        return true;
#endif
    }

    ~Machine() {
#ifdef WAVES
        wave_.close();
#endif
        top_.final();
    }

    void choose(Choice const &choice) {
#ifdef CHOOSES_MODE
        top_.mode = choice.mode;
#endif
#ifdef CHOOSES_LENGTH
        top_.length = choice.length;
#endif
#ifdef CHOOSES_ROOT
        top_.root = choice.root;
#endif
#ifdef CHOOSES_OPERATION
        top_.operation = choice.operation;
#endif
    }

    void set(Input input, const uint32_t *value, uint64_t chunks) {
        switch (input) {
        case START: return put(top_.start, value, chunks);
        case HOST_WE: return put(top_.host_we, value, chunks);
        case HOST_NODE: return put(top_.host_node, value, chunks);
        case HOST_ADDR: return put(top_.host_addr, value, chunks);
        case HOST_WDATA: return put(top_.host_wdata, value, chunks);
        }
    }

    // Inputs change with the falling edge, outputs have settled before the next rising one.
    void tick() {
        top_.clk = 0;
        half();
        top_.clk = 1;
        half();
        clocks++;
    }

    void tick(const std::vector<uint64_t> &) { tick(); }

    bool busy() const { return top_.busy; }
    bool done() const { return top_.done; }
    uint32_t cycles() const { return top_.cycles; }
    const uint32_t *host_rdata() { return get(top_.host_rdata, word_); }

    int wave_error() const {
#ifdef WAVES
        return file_.error;
#else
        return 0;
#endif
    }

    void flush_waves() {
#ifdef WAVES
        wave_.flush();
#endif
    }

    uint64_t clocks = 0;

private:
    void half() {
        top_.eval();
#ifdef WAVES
        wave_.dump(context_.time());
        context_.timeInc(5000);  // 5 ns
#endif
    }

    VerilatedContext context_;
    Vfabric top_;
    uint64_t word_ = 0;
#ifdef WAVES
    WaveFile file_;
    WAVES wave_{&file_};
#endif
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void *machine_open(const char *wave) {
    Machine *const machine = new Machine(wave);
    if (machine->ready())
        return machine;
    delete machine;
    return nullptr;
}

EXPORT int machine_run(void *handle, Choice const *choice, Task *task) {
    Machine *const machine = static_cast<Machine *>(handle);
    machine->choose(*choice);
    machine->clocks = 0;
    int const outcome = drive(*machine, *task);
    task->clocks = machine->clocks;
    return outcome;
}

EXPORT void machine_close(void *machine) { delete static_cast<Machine *>(machine); }
