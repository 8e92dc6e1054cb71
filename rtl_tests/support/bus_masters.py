"""Bus masters for Amaranth's simulator, at random paces, with checks of the protocol."""

__all__ = ["AxiLiteMaster", "WishboneMaster"]

#: Cycles without an answer after which an access fails.
PATIENCE = 200


class WishboneMaster:
    """A Wishbone master with classic cycles."""

    def __init__(self, ctx, top, random):
        self._ctx, self._top, self._random = ctx, top, random

    async def wait(self, cycles):
        if cycles:
            self._ctx.set(self._top.wb_cyc, 0)
        for _ in range(cycles):
            await self._ctx.tick()

    async def irq(self):
        return self._ctx.get(self._top.irq)

    async def read(self, address):
        return await self._access(address, we=0, word=self._random.getrandbits(32), strobes=0)

    async def write(self, address, word, strobes):
        return await self._access(address, we=1, word=word, strobes=strobes) is not None

    async def _access(self, address, *, we, word, strobes):
        ctx, top = self._ctx, self._top
        for port, value in (("cyc", 1), ("stb", 1), ("we", we), ("adr", address // 4),
                            ("sel", strobes), ("dat_w", word)):  # fmt: skip
            ctx.set(getattr(top, f"wb_{port}"), value)
        for _ in range(PATIENCE):
            _, _, ack, error, data = await ctx.tick().sample(top.wb_ack, top.wb_err, top.wb_dat_r)
            assert not (ack and error)
            if ack or error:
                break
        else:
            raise AssertionError(f"no answer at {address:#x}")
        # Either a cycle without an access follows, or the next access at once.
        if self._random.random() < 0.5:
            # A strobe without `cyc` is no access, and neither is `cyc` without a strobe.
            cycle = self._random.getrandbits(1)
            ctx.set(top.wb_cyc, cycle)
            ctx.set(top.wb_stb, not cycle)
            _, _, *answers = await ctx.tick().sample(top.wb_ack, top.wb_err)
            assert answers == [0, 0], "an answer without an access"
        return data if ack else None


class AxiLiteMaster:
    """An AXI4-Lite master whose channels have independent random paces."""

    def __init__(self, ctx, top, random):
        self._ctx, self._top, self._random = ctx, top, random

    async def wait(self, cycles):
        for _ in range(cycles):
            await self._ctx.tick()

    async def irq(self):
        return self._ctx.get(self._top.irq)

    async def read(self, address):
        await self._send({"ar": {"addr": address}})
        data, resp = await self._receive("r", ("data", "resp"))
        return data if resp == 0 else None

    async def write(self, address, word, strobes):
        await self._send({"aw": {"addr": address}, "w": {"data": word, "strb": strobes}})
        (resp,) = await self._receive("b", ("resp",))
        assert resp in (0, 2)
        return resp == 0

    def _port(self, name):
        return getattr(self._top, f"s_axil_{name}")

    async def _send(self, channels):
        """Offer each channel from a random cycle on, until the slave takes it."""
        ctx = self._ctx
        begins = {name: self._random.choice((0, 0, 1, 3)) for name in channels}
        for cycle in range(PATIENCE):
            for name, payload in channels.items():
                if cycle >= begins[name]:
                    ctx.set(self._port(f"{name}valid"), 1)
                    for part, value in payload.items():
                        ctx.set(self._port(name + part), value)
            _, _, *taken = await ctx.tick().sample(*(self._port(f"{n}ready") for n in channels))
            for name, ready in zip(list(channels), taken, strict=True):
                if ready and cycle >= begins[name]:
                    ctx.set(self._port(f"{name}valid"), 0)
                    del channels[name]
            if not channels:
                return
        raise AssertionError(f"{', '.join(channels)} not taken")

    async def _receive(self, name, parts):
        """Take a response from a random cycle on; check that it is stable until then."""
        ctx, held = self._ctx, None
        begin = self._random.choice((0, 0, 1, 5))
        for cycle in range(PATIENCE):
            ready = cycle >= begin
            ctx.set(self._port(f"{name}ready"), ready)
            ports = (self._port(name + part) for part in parts)
            _, _, valid, *values = await ctx.tick().sample(self._port(f"{name}valid"), *ports)
            assert held is None or (valid and values == held), f"{name} did not stay"
            if valid and ready:
                ctx.set(self._port(f"{name}ready"), 0)
                return values
            held = values if valid else None
        raise AssertionError(f"no {name}")
