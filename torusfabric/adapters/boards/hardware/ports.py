"""Ports and bus registers that a board has in addition to those of every fabric."""

from ....contract.ports import Protocol, ports_by_name
from ....contract.registers import Access, Field, Register

__all__ = ["BOARD_PORTS", "LINK_PORTS", "REGISTERS"]

#: Ports that only a board has, and ports whose meaning differs on a board.
BOARD_PORTS = ports_by_name(
    {
        ("control", Protocol.PULSE): {
            "start": "a pulse of one cycle lets the board wait for all others, which start "
            "together",
            "withdraw": "a pulse of one cycle takes back a start that waits for other boards",
        },
        ("control", Protocol.LEVEL): {"board": "the number of this board; it does not change"},
        ("status", Protocol.LEVEL): {
            "cycles": "clock edges from the common start to done, of all attempts",
            "error": "the reason why the last run was refused or failed: 1 mode, 2 root, 3 length, "
            "4 operation, 5 busy, 8 boards were given different choices or hold different images, "
            "9 a link failed, 10 no image is loaded, 11 other boards were not started in time, or "
            "one was reset; 0 if it succeeded",
            "failed": "a bit for each link port that lost a word, is silent, or with error 11 "
            "leads to boards that were not started",
            "attempts": "the number of times that the last run was executed",
        },
    }
)

#: Ports of one link; the port names of a board have the prefix ``link_K_`` for link port K.
LINK_PORTS = ports_by_name(
    {
        ("data", Protocol.LINK): {
            "tx_word": "a word for the neighbouring board, sent together with clk",
            "tx_frame": "the purpose of tx_word: 0 none, 1 message, 2 run, 3 check sum",
            "rx_word": "a word from the neighbouring board",
            "rx_frame": "the purpose of rx_word, as of tx_word",
        },
        ("clock", Protocol.CLOCK): {
            "rx_clk": "the clock of the neighbouring board; words are sampled at its falling edge",
        },
    }
)

#: Bus registers of a board, or fields of common registers, that other fabrics do not have.
REGISTERS = (
    Register("status", 0x1C, Access.READ, "the state of the last run",
             (Field("attempts", 8, 0, "the number of times that the last run was executed",
                    "attempts"),)),
    Register("abort", 0x38, Access.WRITE, "ends runs early",
             (Field("withdraw", 1, 1, "1 withdraws a start that waits for other boards",
                    "withdraw"),)),
    Register.from_port("failed", 0x3C, Access.READ,
                     "a bit for each link port with an error in the last run"),
)  # fmt: skip
